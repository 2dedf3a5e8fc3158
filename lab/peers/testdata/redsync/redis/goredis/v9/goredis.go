// Package goredis has redsync's pool of a go-redis 9 client, with a Manager of Anteroom.
package goredis

import (
	"context"
	"log/slog"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

type pool struct {
	redis.UniversalClient
	m *anteroom.Manager
}

func NewPool(delegate redis.UniversalClient) redsyncredis.Pool {
	m, err := anteroom.NewManager(delegate, anteroom.Config{Logger: slog.New(slog.DiscardHandler), Defaults: anteroom.LockConfig{StringHolders: true}})
	if err != nil {
		panic(err)
	}
	return &pool{delegate, m}
}

func (p *pool) Manager() *anteroom.Manager { return p.m }

func (p *pool) Get(ctx context.Context) (redsyncredis.Conn, error) { return &conn{p, ctx}, nil }

type conn struct {
	*pool
	ctx context.Context
}

// Get returns the value of a lock: its note, or the string of another program.
func (c *conn) Get(name string) (string, error) {
	info, err := c.m.Inspect(c.ctx, name)
	if err == nil && len(info.Holders) == 1 {
		return info.Holders[0].Note, nil
	}
	if err == nil && info.Locked {
		return c.UniversalClient.Get(c.ctx, name).Result()
	}
	return "", err
}

func (c *conn) Set(name, value string) (bool, error) {
	return true, c.UniversalClient.Set(c.ctx, name, value, 0).Err()
}

func (c *conn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	return c.UniversalClient.SetNX(c.ctx, name, value, expiry).Result()
}

func (c *conn) PTTL(name string) (time.Duration, error) {
	return c.UniversalClient.PTTL(c.ctx, name).Result()
}

func (c *conn) Eval(script *redsyncredis.Script, args ...any) (any, error) {
	return c.UniversalClient.Eval(c.ctx, script.Src, []string{args[0].(string)}, args[1:]...).Result()
}

func (c *conn) ScriptLoad(script *redsyncredis.Script) (err error) {
	script.Hash, err = c.UniversalClient.ScriptLoad(c.ctx, script.Src).Result()
	return err
}

func (c *conn) Close() error { return nil }
