package testredis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Authority is a certificate authority for one test.
type Authority struct {
	tb   TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	made int64 // certificates, for their serial numbers
}

// NewAuthority creates an authority. Its files are removed with the test.
func NewAuthority(tb TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, dir: tb.TempDir(), key: newKey(tb)}
	a.cert = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, a.key)
	a.pool = x509.NewCertPool()
	a.pool.AddCert(a.cert)
	a.write("ca.crt", "CERTIFICATE", a.cert.Raw)
	return a
}

// TLSConfig returns the configuration of a client that trusts only this authority. With a name it also has a
// certificate of that name.
func (a *Authority) TLSConfig(name string) *tls.Config {
	a.tb.Helper()
	c := &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	if name != "" {
		cert, key := a.issue(name)
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
	}
	return c
}

// StartTLS runs a redis-server that speaks only TLS, on the port of Addr, with a certificate of a. If it requires
// client certificates, they must be a's. args are as in Start. With a redis-server that was built without TLS the test
// is skipped.
func StartTLS(a *Authority, clientCertificates bool, args ...string) *Server {
	a.tb.Helper()
	cert, key := a.issue("server")
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	ask := "no"
	if clientCertificates {
		ask = "yes"
	}
	files := []string{
		"--tls-cert-file", a.write("server.crt", "CERTIFICATE", cert.Raw),
		"--tls-key-file", a.write("server.key", "EC PRIVATE KEY", der),
		"--tls-ca-cert-file", filepath.Join(a.dir, "ca.crt"), "--tls-auth-clients", ask,
	}
	encrypted := kind{port: freePort, ready: plain.ready, args: func(s *Server) []string {
		// If an option is given twice the last one counts: the plain port is off.
		return slices.Concat(plain.args(s), []string{"--port", "0", "--tls-port", strconv.Itoa(s.port)}, files)
	}}
	return start(a.tb, encrypted, args)
}

// issue creates a certificate for 127.0.0.1, valid for both sides of a connection.
func (a *Authority) issue(name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.tb.Helper()
	key := newKey(a.tb)
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key), key
}

// sign creates a certificate of t for key; without an issuer it is self-signed.
func (a *Authority) sign(t, issuer *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.tb.Helper()
	a.made++
	t.SerialNumber = big.NewInt(a.made)
	t.NotBefore, t.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if issuer == nil {
		issuer = t
	}
	der, err := x509.CreateCertificate(rand.Reader, t, issuer, &key.PublicKey, a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatal(err)
	}
	return cert
}

// write writes a PEM file into the authority's folder and returns its path.
func (a *Authority) write(name, kind string, der []byte) string {
	a.tb.Helper()
	file := filepath.Join(a.dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatal(err)
	}
	return file
}

func newKey(tb TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}
