package lettucecompat

import (
	"cmp"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns the go-redis client that text, a URL, describes, with the settings that suit a Client with opt, of
// which MaxInFlight and CommandTimeout matter. It asks Redis nothing; of the file system it reads the certificates
// that the URL names. The caller closes it, after the Client. URLForms lists the forms.
//
// An error says what is wrong with the URL, and holds no part of it that may be a password.
//
// The settings, of which pool_size, read_timeout and max_retries in the URL win:
//
//	ContextTimeoutEnabled   on: what go-redis sends of a Client keeps no goroutine beyond its time
//	                        limit
//	ReadTimeout             2 × CommandTimeout, at least 2 s: a connection whose answer
//	                        nobody awaits any more comes back soon
//	PoolSize                as many as may be under way, and at least go-redis' default
//	retries                 none, and one try to dial: the Client repeats where it is safe
//	maintenance             no notifications, and no CLIENT SETINFO, which an ACL may
//	                        refuse
//	log                     go-redis writes no line for a server that cannot be reached:
//	                        errors and events say it. What it writes of Sentinels goes
//	                        to its logger, which is for the whole process (redis.SetLogger)
func Open(text string, opt Options) (redis.UniversalClient, error) {
	options, err := parse(text)
	if err != nil {
		return nil, withoutSecrets(text, err)
	}
	s := settingsFor(opt)
	switch o := options.(type) {
	case *redis.FailoverOptions:
		return s.sentinel(o), nil
	case *redis.ClusterOptions:
		return s.cluster(o), nil
	default:
		return s.one(o.(*redis.Options)), nil
	}
}

// URLForms describes the URLs that Open takes, for people.
const URLForms = `redis://[[user]:password@]host[:port][/db]        one server
rediss://...                                      the same with TLS
unix://[[user]:password@]/path/to/socket[?db=n]   one server, local socket
redis+sentinel://[[user]:password@]host[:port],.../master-name[/db]
rediss+sentinel://...                             the hosts are the Sentinels
redis+cluster://[[user]:password@]host[:port],...
rediss+cluster://...                              some nodes of a Cluster`

// settings are what Open sets in all three kinds of options.
type settings struct {
	read time.Duration
	pool int // of one node
}

func settingsFor(opt Options) settings {
	return settings{
		read: max(2*cmp.Or(opt.CommandTimeout, DefaultCommandTimeout), 2*time.Second),
		pool: underWay(cmp.Or(opt.MaxInFlight, DefaultMaxInFlight), false, true),
	}
}

// underWay is how many round trips go-redis has under way for a Client to one node at a time, those that nobody awaits any more
// left out. direct: scripts do not travel by go-redis. replicas: also renewals that wait for replicas, which do.
func underWay(maxInFlight int, direct, replicas bool) (n int) {
	if !direct {
		n = maxInFlight + keepLimit
	}
	if replicas {
		n += min(maxInFlight, waitInFlight)
	}
	return n
}

func (s settings) one(o *redis.Options) *redis.Client {
	o.ContextTimeoutEnabled, o.DialerRetries, o.DisableIdentity = true, 1, true
	o.MaxRetries, o.ReadTimeout = cmp.Or(o.MaxRetries, -1), cmp.Or(o.ReadTimeout, s.read)
	o.PoolSize = cmp.Or(o.PoolSize, max(s.pool, 10*runtime.GOMAXPROCS(0)))
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(o)
	client.AddHook(quietDial{})
	return client
}

func (s settings) sentinel(o *redis.FailoverOptions) *redis.Client {
	o.ContextTimeoutEnabled, o.DialerRetries, o.DisableIdentity = true, cmp.Or(o.DialerRetries, 1), true
	o.MaxRetries, o.ReadTimeout = cmp.Or(o.MaxRetries, -1), cmp.Or(o.ReadTimeout, s.read)
	o.PoolSize = cmp.Or(o.PoolSize, max(s.pool, 10*runtime.GOMAXPROCS(0)))
	client := redis.NewFailoverClient(o)
	client.AddHook(quietDial{})
	return client
}

func (s settings) cluster(o *redis.ClusterOptions) *redis.ClusterClient {
	o.ContextTimeoutEnabled, o.DialerRetries, o.DisableIdentity = true, cmp.Or(o.DialerRetries, 1), true
	o.MaxRetries, o.ReadTimeout = cmp.Or(o.MaxRetries, -1), cmp.Or(o.ReadTimeout, s.read)
	o.PoolSize = cmp.Or(o.PoolSize, max(s.pool, 5*runtime.GOMAXPROCS(0)))
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClusterClient(o)
	client.OnNewNode(func(node *redis.Client) { node.AddHook(quietDial{}) })
	return client
}
