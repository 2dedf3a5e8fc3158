package scenario

import (
	"github.com/anteroom/anteroom/bench/crew"
	"github.com/anteroom/anteroom/bench/growth"
	"github.com/anteroom/anteroom/bench/handover"
	"github.com/anteroom/anteroom/bench/proxy"
	"github.com/anteroom/anteroom/internal/child"
)

// Roles are what a program's children do that runs scenarios: child.Run is given them
// before anything else.
var Roles = map[string]child.Role{
	crew.RoleName:     crew.Role,
	handover.RoleName: handover.Role,
	growth.RoleName:   growth.Role,
	proxy.RoleName:    proxy.Role,
}
