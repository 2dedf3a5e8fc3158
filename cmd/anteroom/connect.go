package main

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// redisVariable is the environment variable that stands in for --redis. Unlike a flag it
// is not shown to every user of the machine by ps.
const redisVariable = "ANTEROOM_REDIS"

// defaultRedis is where Redis is if nobody says.
const defaultRedis = "redis://127.0.0.1:6379"

// redisHelp describes the forms of the URL, for the long help of the commands that use it.
const redisHelp = `Redis is named by --redis or, better for a URL with a password because ps shows
arguments, by the environment variable ANTEROOM_REDIS. The flag wins. The forms are

  redis://[[user]:password@]host[:port][/db]        one server
  rediss://...                                      the same with TLS
  unix://[[user]:password@]/path/to/socket[?db=n]   one server, local socket
  redis+sentinel://[[user]:password@]host[:port],.../master-name[/db]
  rediss+sentinel://...                             the hosts are the Sentinels
  redis+cluster://[[user]:password@]host[:port],...
  rediss+cluster://...                              some nodes of a Cluster

User and password are those of the Redis servers; the Sentinels' own ones are the
options sentinel_username and sentinel_password. Characters such as / ? # @ in a
password are written as %2F %3F %23 %40. Options follow a question mark, for example
?dial_timeout=2s&read_timeout=500ms, and with TLS skip_verify=true.`

// addRedisFlag gives root and all of its commands the flag --redis.
func addRedisFlag(root *cobra.Command) {
	root.PersistentFlags().String("redis", "",
		"URL of the Redis; default $"+redisVariable+", or "+defaultRedis)
}

// connect returns a client of the Redis that the command line or the environment names. It
// does not ask Redis anything. The caller closes the client. An error is one of usage, and
// never holds a part of the URL that may be a password.
func connect(cmd *cobra.Command) (redis.UniversalClient, error) {
	from := "--redis"
	text, err := cmd.Flags().GetString("redis")
	if err != nil {
		return nil, err
	}
	if text == "" {
		from, text = redisVariable, os.Getenv(redisVariable)
	}
	if text == "" {
		text = defaultRedis
	}
	client, err := clientOf(text)
	if err != nil {
		return nil, usageError("%s: %w", from, withoutSecrets(text, err))
	}
	return client, nil
}

// clientOf makes the client that a URL describes.
func clientOf(text string) (redis.UniversalClient, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	switch {
	case kind == "" && (base == "redis" || base == "rediss" || base == "unix"):
		o, err := redis.ParseURL(text)
		if err != nil {
			return nil, err
		}
		return redis.NewClient(o), nil
	case kind == "sentinel" && (base == "redis" || base == "rediss"):
		o, err := sentinelOptions(base, rest)
		if err != nil {
			return nil, err
		}
		return redis.NewFailoverClient(o), nil
	case kind == "cluster" && (base == "redis" || base == "rediss"):
		o, err := clusterOptions(base, rest)
		if err != nil {
			return nil, err
		}
		return redis.NewClusterClient(o), nil
	}
	return nil, errScheme
}

var errScheme = errors.New("redis: the URL must begin with redis://, rediss://, unix://, " +
	"redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://")

// sentinelOptions turns our form into the one of go-redis: there user and password in front
// of the host are the Sentinels', and the Redis' own ones are parameters.
func sentinelOptions(base, rest string) (*redis.FailoverOptions, error) {
	u, err := splitHosts(base, rest, "26379")
	if err != nil {
		return nil, err
	}
	q := u.Query()
	name, db, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if name == "" || q.Has("master_name") || q.Has("username") || q.Has("password") {
		return nil, errors.New("redis: the form is redis+sentinel://user:password@host:port,host:port/master-name/db")
	}
	q.Set("master_name", name)
	if password, ok := u.User.Password(); ok {
		q.Set("password", password)
	}
	q.Set("username", u.User.Username())
	u.User = nil
	if q.Has("sentinel_username") || q.Has("sentinel_password") {
		u.User = url.UserPassword(q.Get("sentinel_username"), q.Get("sentinel_password"))
		q.Del("sentinel_username")
		q.Del("sentinel_password")
	}
	u.Path, u.RawPath = "/"+db, ""
	u.RawQuery = q.Encode()
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, err
	}
	ownNames(o.TLSConfig)
	return o, nil
}

// clusterOptions turns our form into the one of go-redis.
func clusterOptions(base, rest string) (*redis.ClusterOptions, error) {
	u, err := splitHosts(base, rest, "6379")
	if err != nil {
		return nil, err
	}
	if strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("redis: a Cluster has no databases, so nothing follows the hosts but options")
	}
	// go-redis knows this option in its other forms only.
	q := u.Query()
	skip := q.Get("skip_verify")
	q.Del("skip_verify")
	if skip != "" && skip != "true" && skip != "1" && skip != "false" && skip != "0" {
		return nil, errors.New("redis: skip_verify is true or false")
	}
	u.RawQuery = q.Encode()
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, err
	}
	ownNames(o.TLSConfig)
	if o.TLSConfig != nil {
		o.TLSConfig.InsecureSkipVerify = skip == "true" || skip == "1"
	}
	return o, nil
}

// splitHosts parses what follows the scheme of a URL with several hosts, which net/url
// does not know: the first one stays the URL's host, the others become parameters "addr".
// Parameters that would lead commands away from the master are refused, because a lock is
// nowhere else.
func splitHosts(base, rest, port string) (*url.URL, error) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	user, hosts := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	list := strings.Split(hosts, ",")
	u, err := url.Parse(base + "://" + user + list[0] + tail)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	for _, name := range []string{"addr", "replica_only", "read_only", "route_by_latency", "route_randomly"} {
		if q.Has(name) {
			return nil, errors.New("redis: the option " + name + " is not for locks")
		}
	}
	for i, text := range list {
		h, err := url.Parse("redis://" + text)
		if err != nil || h.Hostname() == "" || h.User != nil {
			return nil, errors.New("redis: one of the hosts is not host:port")
		}
		p := h.Port()
		if p == "" {
			p = port
		}
		if addr := net.JoinHostPort(h.Hostname(), p); i == 0 {
			u.Host = addr
		} else {
			q.Add("addr", addr)
		}
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// ownNames lets every server be checked by the name under which it is reached. go-redis
// puts the name of the first host for all of them.
func ownNames(c *tls.Config) {
	if c != nil {
		c.ServerName = ""
	}
}

// withoutSecrets returns an error about a URL without what may be a password. Texts of
// net/url repeat the URL. Those of go-redis repeat paths, names of options and hosts: a
// password lands there if one of its characters was taken for a separator.
func withoutSecrets(text string, err error) error {
	_, rest, _ := strings.Cut(text, "://")
	tail := ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		tail = rest[i:]
	}
	clean := !strings.Contains(tail, "@") && !strings.Contains(strings.ToLower(text), "password=")
	if said, ok := strings.CutPrefix(err.Error(), "redis: "); ok && (clean || err == errScheme) {
		return errors.New(said)
	}
	return errors.New("not a URL such as redis://user:password@host:6379/0; " +
		"in a password / ? # @ are written %2F %3F %23 %40")
}
