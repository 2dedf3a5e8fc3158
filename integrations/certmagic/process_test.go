package anteroomcertmagic

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// plan is what a process of these tests does.
type plan struct {
	Addr, Dir string
	Locks     bool          // in Redis; false: none
	Lease     time.Duration // of those
	Slow      time.Duration // for how long an issuer works
	First     bool          // its issuer does not end
}

// obtain is the program of such a process: it obtains a certificate that no process has yet. It reports "issuing" when
// its issuer is called, and "has it" when it has a certificate.
func obtain(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var p plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	m, err := anteroom.NewManager(rdb, anteroom.Config{})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)
	locker, err := New(m, anteroom.LockConfig{LeaseTime: p.Lease})
	if err != nil {
		return err
	}
	var storage certmagic.Storage = &certmagic.FileStorage{Path: p.Dir}
	if storage = locker.Storage(storage); !p.Locks {
		storage = unlocked{storage}
	}
	var cfg *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil },
		Logger:           zap.NewNop(),
	})
	defer cache.Stop()
	cfg = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{issuer{l, p}}, Logger: zap.NewNop()})
	if err := cfg.ObtainCertSync(ctx, "example.com"); err != nil {
		return err
	}
	return l.Send("has it")
}

// unlocked is a storage whose locks exclude nobody.
type unlocked struct{ certmagic.Storage }

func (unlocked) Lock(context.Context, string) error   { return nil }
func (unlocked) Unlock(context.Context, string) error { return nil }

// issuer is an authority that signs everything.
type issuer struct {
	l *child.Link
	p plan
}

func (issuer) IssuerKey() string { return "test" }

func (i issuer) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := i.l.Send("issuing"); err != nil {
		return nil, err
	}
	if i.p.First {
		<-ctx.Done() // until the process is killed
	}
	select {
	case <-time.After(i.p.Slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example.com"}, DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, csr.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// process starts one, and returns it and what it reports.
func process(t *testing.T, p plan) (*child.Process, <-chan string) {
	t.Helper()
	c, err := child.Start(t.Context(), "obtain", p, 2*pace.Hang)
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan string, 10)
	go func() {
		defer close(reports)
		for {
			var text string
			if c.Receive(&text, 2*pace.Hang) != nil {
				return
			}
			reports <- text
		}
	}()
	return c, reports
}

// all waits for the end of three processes, and returns how many certificates were issued.
func all(t *testing.T, p plan) (issued int) {
	t.Helper()
	var started []*child.Process
	var reports []<-chan string
	for range 3 {
		c, r := process(t, p)
		started, reports = append(started, c), append(reports, r)
	}
	for i, r := range reports {
		has := false
		for text := range r {
			switch text {
			case "issuing":
				issued++
			case "has it":
				has = true
			}
		}
		if err := started[i].Stop(pace.Hang); err != nil || !has {
			t.Errorf("process %d has a certificate: %v (%v)", i, has, err)
		}
	}
	return issued
}

// Three processes start at the same time. One obtains the certificate, and the others wait for it. Without locks several do.
func TestProcesses_OneObtains_Lab(t *testing.T) {
	p := plan{Addr: testredis.Start(t).Addr(), Dir: t.TempDir(), Locks: true, Lease: time.Minute, Slow: 100 * time.Millisecond}
	if n := all(t, p); n != 1 {
		t.Errorf("%d certificates were issued, want 1", n)
	}
	p.Locks = false
	for slow := time.Second; ; slow *= 2 { // so that all have started in the meantime
		p.Slow, p.Dir = slow, t.TempDir()
		n := all(t, p)
		if n > 1 {
			return
		}
		if slow > 20*time.Second {
			t.Fatal("without locks one was issued, too: this test shows nothing")
		}
	}
}

// The process that obtains the certificate is killed. Another one does after the lease.
func TestProcesses_TheHolderIsKilled_Lab(t *testing.T) {
	p := plan{Addr: testredis.Start(t).Addr(), Dir: t.TempDir(), Locks: true, Lease: pace.Scale(2 * time.Second), First: true}
	first, reports := process(t, p)
	if text := <-reports; text != "issuing" {
		t.Fatalf("the first process reports %q", text)
	}
	p.First = false
	second, others := process(t, p)
	first.Kill()
	var got []string
	for text := range others {
		got = append(got, text)
	}
	if len(got) != 2 || got[0] != "issuing" || got[1] != "has it" {
		t.Errorf("the second process reports %q", got)
	}
	if err := second.Stop(pace.Hang); err != nil {
		t.Error(err)
	}
}
