package lettucecompat

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// parse reads a URL into the options of go-redis for its form. An error's text may repeat parts of the URL.
func parse(text string) (options any, err error) {
	if strings.TrimSpace(text) != text {
		return nil, errSpace
	}
	scheme, tail, _ := strings.Cut(text, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	switch {
	case kind == "" && (base == "redis" || base == "rediss" || base == "unix"):
		return oneOptions(text)
	case kind == "sentinel" && (base == "redis" || base == "rediss"):
		return sentinelOptions(base, tail)
	case kind == "cluster" && (base == "redis" || base == "rediss"):
		return clusterOptions(base, tail)
	}
	return nil, errScheme
}

var errScheme = errors.New("redis: the URL must begin with redis://, rediss://, unix://, " +
	"redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://")

var errSpace = errors.New("redis: the URL begins or ends with white space, such as the end of a line")

// checkDB refuses a number of a database that no server has.
func checkDB(db int) error {
	if db < 0 || db > maxDB {
		return fmt.Errorf("redis: invalid database number: %d", db)
	}
	return nil
}

// oneOptions reads the URL of one server, which go-redis knows but for the certificates.
func oneOptions(text string) (*redis.Options, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if !plainHost(u) {
		return nil, errHost
	}
	if err := checkOptions(u.Query()); err != nil {
		return nil, err
	}
	files := takeFiles(u)
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	return o, cmp.Or(checkDB(o.DB), files.into(o.TLSConfig))
}

// sentinelOptions turns our form into the one of go-redis: there user and password in front of the host are the
// Sentinels', and the Redis' own ones are parameters.
func sentinelOptions(base, tail string) (*redis.FailoverOptions, error) {
	u, err := splitHosts(base, tail, "26379")
	if err != nil {
		return nil, err
	}
	files := takeFiles(u)
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
	return o, cmp.Or(checkDB(o.DB), files.into(o.TLSConfig))
}

// clusterOptions turns our form into the one of go-redis.
func clusterOptions(base, tail string) (*redis.ClusterOptions, error) {
	u, err := splitHosts(base, tail, "6379")
	if err != nil {
		return nil, err
	}
	if strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("redis: a Cluster has no databases, so only options can be after the hosts")
	}
	files := takeFiles(u)
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
		o.TLSConfig.MinVersion = tls.VersionTLS12 // as in the other forms
	}
	return o, files.into(o.TLSConfig)
}

// splitHosts parses what is after the scheme of a URL with several hosts, which net/url does not know: the first one
// stays the URL's host, the others become parameters "addr". Parameters that would send commands to others than the
// master are refused, because a lock is nowhere else.
func splitHosts(base, text, port string) (*url.URL, error) {
	end := strings.IndexAny(text, "/?#")
	if end < 0 {
		end = len(text)
	}
	authority, tail := text[:end], text[end:]
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
	if err := checkOptions(q); err != nil {
		return nil, err
	}
	for i, text := range list {
		h, err := url.Parse("redis://" + text)
		if err != nil || h.Hostname() == "" || h.User != nil || !plainHost(h) {
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

var errHost = errors.New("redis: the host is not host:port; user and password end with an @")

// plainHost reports whether no password has slipped into the host, as where the @ is missing or mistyped. It would be
// resolved as a name, and appear in errors and in the log of go-redis.
func plainHost(u *url.URL) bool {
	return !strings.Contains(u.Host, ",") && (strings.HasPrefix(u.Host, "[") || !strings.Contains(u.Hostname(), ":"))
}

// ownNames lets every server be checked by the name under which it is reached. go-redis puts the name of the first
// host for all of them.
func ownNames(c *tls.Config) {
	if c != nil {
		c.ServerName = ""
	}
}

// files are the options of a URL that name files in PEM form: whom the client trusts in place of the system's
// authorities, and its own certificate with its key.
type files struct{ ca, cert, key string }

// takeFiles takes them out of the URL, because go-redis refuses options that it does not know.
func takeFiles(u *url.URL) files {
	q := u.Query()
	f := files{q.Get("ca_file"), q.Get("cert_file"), q.Get("key_file")}
	if f != (files{}) {
		q.Del("ca_file")
		q.Del("cert_file")
		q.Del("key_file")
		u.RawQuery = q.Encode()
	}
	return f
}

// into puts them into c, which is nil where the URL asks for no TLS. The client's certificate is read again for each
// connection: it may be renewed while the program runs.
func (f files) into(c *tls.Config) error {
	switch {
	case f == (files{}):
		return nil
	case c == nil:
		return errors.New("redis: ca_file, cert_file and key_file are for TLS: the URL must begin with rediss")
	case (f.cert == "") != (f.key == ""):
		return errors.New("redis: cert_file and key_file belong together")
	}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return fmt.Errorf("redis: ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return errors.New("redis: ca_file holds no certificate in PEM form")
		}
	}
	if f.cert == "" {
		return nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(f.cert, f.key)
		return &cert, err
	}
	if _, err := load(nil); err != nil {
		return fmt.Errorf("redis: cert_file and key_file: %w", err)
	}
	c.GetClientCertificate = load
	return nil
}

// withoutSecrets returns an error about a URL without what may be a password. Texts of net/url repeat the URL. Those
// of go-redis repeat paths, names of options and hosts: a password lands there if one of its characters was taken for
// a separator.
func withoutSecrets(text string, err error) error {
	_, after, _ := strings.Cut(text, "://")
	tail := ""
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		tail = after[i:]
	}
	clean := !strings.Contains(tail, "@") && !strings.Contains(strings.ToLower(text), "password=")
	if said, ok := strings.CutPrefix(err.Error(), "redis: "); ok && (clean || err == errScheme || err == errSpace) {
		return errors.New(said)
	}
	return errors.New("not a URL such as redis://user:password@host:6379/0; " +
		"in a password / ? # @ are written %2F %3F %23 %40")
}
