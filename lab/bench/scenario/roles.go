package scenario

import (
	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/crew"
	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/handover"
	"github.com/anteroom/anteroom/lab/bench/proxy"
)

// Roles returns the roles of children of a program that runs scenarios; pass them to child.Run before anything else.
func Roles() map[string]child.Role {
	return map[string]child.Role{
		crew.RoleName:     crew.Role,
		handover.RoleName: handover.Role,
		growth.RoleName:   growth.Role,
		proxy.RoleName:    proxy.Role,
	}
}
