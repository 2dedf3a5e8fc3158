package testredis

import (
	"crypto/x509"
	"path/filepath"
	"strings"
)

// URL returns the Sentinels and the master's name as a URL for anteroom.Open.
func (s *Sentinel) URL() string {
	return "redis+sentinel://" + addresses(s.sentinels) + "/" + MasterName
}

// URL returns the nodes as a URL for anteroom.Open.
func (c *Cluster) URL() string { return "redis+cluster://" + addresses(c.nodes) }

func addresses(servers []*Server) string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return strings.Join(list, ",")
}

// Files returns the authority's certificate, and a certificate of that name with its key, as PEM files.
func (a *Authority) Files(name string) (ca, cert, key string) {
	a.tb.Helper()
	c, k := a.issue(name)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.tb.Fatal(err)
	}
	return filepath.Join(a.dir, "ca.crt"), a.write(name+".crt", "CERTIFICATE", c.Raw), a.write(name+".key", "EC PRIVATE KEY", der)
}
