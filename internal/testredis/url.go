package testredis

import (
	"crypto/x509"
	"path/filepath"
	"strings"
)

// URL returns the Sentinels and the master's name in the form of anteroom.Open.
func (s *Sentinel) URL() string {
	return "redis+sentinel://" + addresses(s.sentinels) + "/" + MasterName
}

// URL returns the nodes in the form of anteroom.Open.
func (c *Cluster) URL() string { return "redis+cluster://" + addresses(c.nodes) }

func addresses(servers []*Server) string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return strings.Join(list, ",")
}

// Files returns the authority's certificate, and one of that name with its key, as files
// in PEM form.
func (a *Authority) Files(name string) (ca, cert, key string) {
	a.tb.Helper()
	c, k := a.issue(name)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.tb.Fatal(err)
	}
	return filepath.Join(a.dir, "ca.crt"), a.write(name+".crt", "CERTIFICATE", c.Raw), a.write(name+".key", "EC PRIVATE KEY", der)
}
