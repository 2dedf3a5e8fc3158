package lettucecompat_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// renewsUnits asks that the units which p has in its last grant are renewed.
func (p *peer) renewsUnits(grant uint64, units int64) lettucecompat.RenewReply {
	p.t.Helper()
	r := lettucecompat.Renewal{Key: p.key, Grant: grant, Units: units, Lease: lease}
	return p.Renew(ctx, []lettucecompat.Renewal{r}, 0)[0]
}

// TestUnits_I15_ARenewalChangesTheEndAlone: not the units, nor the number, by which a command under way is still one of a
// later moment; and what others have stays.
func TestUnits_I15_ARenewalChangesTheEndAlone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		p, q := newPeer(t, b.rdb, "p"), newPeer(t, b.rdb, "q")
		p.terms, q.terms = semaphore(7), semaphore(7)
		p.wants("3", has, p.units(0, 0, 3))
		grant := p.unit
		q.wants("2", has, q.units(0, 0, 2))
		before := b.raw.HGetAll(ctx, "k").Val()
		r := p.renewsUnits(grant, 3)
		want(t, "renewed", r.Outcome, ok)
		want(t, "units", r.Units, int64(3))
		want(t, "contended", r.Contended, false)
		want(t, "SentAt", r.SentAt.IsZero(), false)
		b.wantTTL(t, "k", lease-margin, lease+2*time.Second)
		after := b.raw.HGetAll(ctx, "k").Val()
		want(t, "of another", after["q"], before["q"])
		var n, units, ends, was uint64
		var rest, now string
		_, _ = fmt.Sscanf(before["p"], "%d %d %d %s", &n, &units, &was, &rest)
		want(t, "record", after["p"][:len("1700000000000001 3 ")], strconv.FormatUint(n, 10)+" 3 ")
		_, _ = fmt.Sscanf(after["p"], "%d %d %d %s", &n, &units, &ends, &now)
		if moved := time.Duration(ends-was) * time.Millisecond; moved < lease-callLease-margin {
			t.Errorf("the end has moved by %v", moved)
		}
		p.wants("a command of the same client", has, p.units(3, 3, 5))
		want(t, "fewer than there are", p.renewsUnits(grant, 3).Units, int64(5))
		want(t, "all", p.renewsUnits(grant, 5).Outcome, ok)
		want(t, "more than there are", p.renewsUnits(grant, 6).Outcome, gone)
		want(t, "a grant to come", p.renewsUnits(p.n+1, 5).Outcome, gone)
		p.drops(5)
		want(t, "after the release", p.renewsUnits(grant, 1).Outcome, gone)
		q.drops(2)
		b.nothingLeft(t)
	})
}

// TestUnits_S22_ARenewalSaysThatAnotherWaits, until a command says otherwise: a message may have been lost.
func TestUnits_S22_ARenewalSaysThatAnotherWaits(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		p, q := newPeer(t, b.rdb, "p"), newPeer(t, b.rdb, "q")
		p.terms, q.terms = rwTerms, rwTerms
		p.reads()
		grant := p.unit
		want(t, "alone", p.renewsUnits(grant, 1).Contended, false)
		q.wants("write", waits, q.units(0, 0, all))
		want(t, "beside a writer that waits", p.renewsUnits(grant, 1).Contended, true)
		q.wants("cancel", hasNothing, q.units(0, 0, 0))
		p.wants("command", has, p.units(1, 1, 1))
		want(t, "alone again", p.renewsUnits(grant, 1).Contended, false)
	})
}

// TestUnits_S16_ARenewalOfWhatIsOver: units whose lease has ended are none, though nobody has counted anew.
func TestUnits_S16_ARenewalOfWhatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		p := newPeer(t, b.rdb, "p")
		p.terms = rwTerms
		p.reads()
		time.Sleep(callLease - time.Millisecond)
		want(t, "before", p.renewsUnits(p.unit, 1).Outcome, ok)
		time.Sleep(lease)
		want(t, "after", p.renewsUnits(p.unit, 1).Outcome, gone)
	})
}

// TestUnits_I3_RenewalsOfWhatIsNotThere: only a master says so, and what is no lock of units has none.
func TestUnits_I3_RenewalsOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		p := newPeer(t, b.rdb, "p")
		p.terms = rwTerms
		want(t, "nothing", p.renewsUnits(first, 1).Outcome, gone)
		b.raw.Set(ctx, "k", "theirs", 0)
		want(t, "a string", p.renewsUnits(first, 1).Outcome, gone)
		b.raw.Del(ctx, "k")
		b.put(t, "k", hash{"p:1700000000000001": "1"}, time.Minute)
		want(t, "a Mutex", p.renewsUnits(first, 1).Outcome, gone)
		b.raw.Del(ctx, "k")
		p.reads()
		if b.real == nil {
			return
		}
		must2(b.raw.Do(ctx, "replicaof", "127.0.0.1", "1").Result())
		r := p.renewsUnits(p.unit, 1)
		want(t, "a replica", r.Outcome, failed)
		want(t, "may be repeated", lettucecompat.Transient(r.Err), true)
		want(t, "a replica that lacks it", p.renewsUnits(p.n+1, 1).Outcome, failed)
	})
}

// TestUnits_S16_OneCommandRenewsMany: a thousand units are four calls, as a thousand fields are. Each has its lease, and a bad key
// fails alone.
func TestUnits_S16_OneCommandRenewsMany(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	p := newPeer(t, b.rdb, "p")
	p.terms = rwTerms
	var batch []lettucecompat.Renewal
	for i := range 100 {
		p.key = fmt.Sprint("k", i)
		p.reads()
		batch = append(batch, lettucecompat.Renewal{Key: p.key, Grant: p.unit, Units: 1, Lease: lease})
	}
	batch[7].Lease = 2 * lease
	b.raw.Del(ctx, "k9")
	p.Renew(ctx, batch[:1], 0) // the script is loaded
	before := b.real.Stats(t)["evalsha"]
	for i, r := range p.Renew(ctx, batch, 0) {
		want(t, batch[i].Key, r.Outcome == ok, i != 9)
	}
	want(t, "commands", b.real.Stats(t)["evalsha"]-before, int64(1))
	b.wantTTL(t, "k6", lease-margin, lease+2*time.Second)
	b.wantTTL(t, "k7", 2*lease-margin, 2*lease+2*time.Second)
}
