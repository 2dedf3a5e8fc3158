package fence_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

// Of each resource batches × holders rounds are played.
const batches, holders = 10, 50

// paused plays the rounds on tables with a row for each key.
func (d database) paused(t *testing.T, db *sql.DB) {
	for _, table := range []string{"guarded", "control"} {
		apply(t, db, "CREATE TABLE "+table+" (resource VARCHAR(40) PRIMARY KEY, writer BIGINT NOT NULL)")
		for batch := range batches {
			for _, key := range keys(batch) {
				apply(t, db, fmt.Sprintf("INSERT INTO %s VALUES ('%s', 0)", table, key))
			}
		}
	}
	play(t, testredis.Start(t), &d, func(table, key string) (token int64, err error) {
		err = db.QueryRowContext(t.Context(), fmt.Sprintf("SELECT writer FROM %s WHERE resource = '%s'", table, key)).Scan(&token)
		return token, err
	})
}

// The resource is a key of the same Redis.
func TestRedis(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	play(t, s, nil, func(table, key string) (int64, error) { return rdb.Get(t.Context(), table+":"+key).Int64() })
}

// keys returns those of a batch.
func keys(batch int) []string {
	list := make([]string, holders)
	for i := range list {
		list[i] = fmt.Sprintf("key-%d-%d", batch, i)
	}
	return list
}

// play stops one of two processes while it holds the keys of a batch, lets the other acquire and write them, and
// then the stopped one; the next time it is the other way round. writer returns who wrote last.
func play(t *testing.T, s *testredis.Server, d *database, writer func(table, key string) (int64, error)) {
	var both [2]*child.Process
	for i := range both {
		p, err := child.Start(t.Context(), holderRole, plan{Redis: s.URL(), Database: d}, child.Forever)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Stop(pace.Hang); err != nil {
				t.Error(err)
			}
		})
		both[i] = p
	}
	stale, control := 0, 0
	for batch := range batches {
		paused, next := both[batch%2], both[1-batch%2]
		all := keys(batch)
		old := ask(t, paused, order{"acquire", all})
		signal(t, paused, child.SIGSTOP)
		err := errors.Join(child.AwaitStop(paused.Pid()), paused.Send(order{"write", all})) // past its last check
		if err != nil {
			t.Fatal(err)
		}
		newer := ask(t, next, order{"acquire", all}) // when the leases have ended
		if got := ask(t, next, order{"write", all}); got.Refused != 0 {
			t.Errorf("batch %d: %d writes of the newer holder were refused", batch, got.Refused)
		}
		signal(t, paused, child.SIGCONT)
		if got := answer(t, paused); got.Refused != holders {
			t.Errorf("batch %d: %d of %d late writes were refused", batch, got.Refused, holders)
		}
		for i, key := range all {
			guarded, err1 := writer("guarded", key)
			unguarded, err2 := writer("control", key)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if old.Tokens[i] >= newer.Tokens[i] {
				t.Errorf("%s: token %d after %d", key, newer.Tokens[i], old.Tokens[i])
			}
			if guarded != newer.Tokens[i] {
				stale++
			}
			if unguarded == old.Tokens[i] {
				control++
			}
		}
		ask(t, paused, order{"release", all})
		ask(t, next, order{"release", all})
	}
	t.Logf("%d rounds: %d stale writes, and %d without the guard", batches*holders, stale, control)
	if stale != 0 {
		t.Errorf("%d stale writes", stale)
	}
	if control != batches*holders {
		t.Errorf("without the guard there were %d stale writes in %d rounds: this proves less than it says", control, batches*holders)
	}
}

func signal(t *testing.T, p *child.Process, s os.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, p *child.Process, o order) reply {
	t.Helper()
	if err := p.Send(o); err != nil {
		t.Fatal(err)
	}
	return answer(t, p)
}

func answer(t *testing.T, p *child.Process) (r reply) {
	t.Helper()
	if err := p.Receive(&r, pace.Hang); err != nil {
		t.Fatal(err)
	}
	return r
}
