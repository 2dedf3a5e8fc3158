package leader_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/leader"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// TestClientGo has, by name, what the tests of k8s.io/client-go/tools/leaderelection v0.37.2 check of an election. As
// they are, they set the fields of its elector and count its calls to a fake API server. These do not apply:
//
//   - TestTryCoordinatedRenew, TestLeaseCandidateCreation, TestLeaseCandidateAck: there the API server elects.
//   - TestLeaseSpecToLeaderElectionRecordRoundTrip: it converts Kubernetes' objects.
//   - TestFastPathLeaderElection: it is about the calls of a renewal alone.
//
// That a leader which has died is succeeded after its lease, TestLeader_Observe says.
func TestClientGo(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager, a, b *candidate) bool{
		"TestTryAcquireOrRenewLeases": func(t *testing.T, _ *locktest.Manager, other *anteroom.Manager, a, b *candidate) bool {
			time.Sleep(10 * time.Minute)
			renewed := a.Leading() && !b.Leading()
			a.stop()
			synctest.Wait()
			l, err := b.Leader(t.Context())
			return renewed && b.Leading() && err == nil && l.ID == other.ClientID()
		},
		"TestReleaseLeaseLeases": func(t *testing.T, _ *locktest.Manager, _ *anteroom.Manager, a, b *candidate) bool {
			b.stop()
			a.stop()
			synctest.Wait()
			l, err := a.Leader(t.Context())
			return l.ID == "" && err == nil && !a.Leading()
		},
		// The release of a leader that was replaced frees nobody.
		"TestReleaseMethodCallsGet": func(t *testing.T, _ *locktest.Manager, other *anteroom.Manager, a, b *candidate) bool {
			b.stop()
			mu, _ := other.NewMutex(anteroom.LockConfig{Key: key, Fair: true, LongWait: -1})
			taken, err := mu.Seize(t.Context())
			a.stop()
			synctest.Wait()
			return err == nil && taken.Held() && taken.Release(t.Context()) == nil
		},
		"TestReleaseRetriesOnConflict": func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager, a, b *candidate) bool {
			lt.Down()
			a.stop()
			lt.Up()
			time.Sleep(3 * time.Second)
			return b.Leading() // before the lease is over
		},
		"TestReleaseOnCancellation_Leases": func(t *testing.T, _ *locktest.Manager, _ *anteroom.Manager, a, b *candidate) bool {
			time.Sleep(10*time.Second + 100*time.Millisecond) // a renewal is due
			a.stop()
			synctest.Wait()
			return b.Leading()
		},
		"TestLeaderElectionConfigValidation": func(t *testing.T, _ *locktest.Manager, other *anteroom.Manager, _, _ *candidate) bool {
			_, err := leader.New(other, anteroom.LockConfig{}, "")
			return errors.Is(err, anteroom.ErrConfig)
		},
		"TestCheckMethodRace": func(t *testing.T, _ *locktest.Manager, _ *anteroom.Manager, a, _ *candidate) bool {
			ok := true
			for begin := time.Now(); time.Since(begin) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
				_, err := a.Leader(t.Context())
				ok = ok && err == nil && a.Leading()
			}
			return ok
		},
		"TestLeaderElectionHealthChecker": func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager, a, b *candidate) bool {
			lt.Down()
			time.Sleep(15 * time.Second)
			within := a.Leading()
			time.Sleep(30 * time.Second)
			after := a.Leading() || b.Leading()
			lt.Up()
			return within && !after
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
				a, b := stand(t, lt.Manager), stand(t, other)
				a.leads(t, b)
				if !check(t, lt, other, a, b) {
					t.Error("it is not so")
				}
				for _, c := range []*candidate{b, a} {
					c.stop()
					<-c.ended
				}
			})
		})
	}
}
