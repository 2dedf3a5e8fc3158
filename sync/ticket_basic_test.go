package anteroom_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A hold continues in another process: nobody is in between, the token is the same, and the next one's is larger.
func TestTicket_AHoldContinuesElsewhere(t *testing.T) {
	for _, dialect := range []anteroom.Dialect{anteroom.DialectDesignDocument, anteroom.DialectRedisson} {
		bubble(t, func(t *testing.T, s *embedded) {
			cfg := anteroom.Config{Dialect: dialect, Defaults: anteroom.LockConfig{Fencing: true}}
			a, _ := manager(t, s.client(), cfg)
			b, _ := manager(t, s.client(), cfg)
			c, _ := manager(t, s.client(), cfg)
			h := acquire(t, a.Mutex("k"))
			ctx := h.Context()
			waiter := s.waiting(t, bg, c.Mutex("k"))
			ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
			if err := h.Err(); !errors.Is(err, anteroom.ErrNotHeld) || ctx.Err() == nil {
				t.Fatalf("the detached Hold: %v, its context: %v", err, ctx.Err())
			}
			time.Sleep(50 * time.Second)
			resumed := resume(t, b, ticket)
			if tokenOf(resumed) != tokenOf(h) || tokenOf(h) == 0 {
				t.Errorf("token %d, after Detach of %d", tokenOf(resumed), tokenOf(h))
			}
			time.Sleep(2 * time.Minute) // it is renewed
			select {
			case <-waiter:
				t.Fatal("somebody came in between")
			default:
			}
			ok(t, resumed.Err())
			ok(t, resumed.Release(bg))
			next := <-waiter
			if tokenOf(next) <= tokenOf(resumed) {
				t.Errorf("token %d after %d", tokenOf(next), tokenOf(resumed))
			}
			ok(t, next.Release(bg))
			s.settle()
			s.nothing(t, "k")
		})
	}
}

// A ticket is worth nothing a second time, after its time, after ForceRelease and Seize, and if it was changed.
func TestTicket_IsWorthNothing(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, m *anteroom.Manager, ticket *anteroom.Ticket){
		"resumed before": func(t *testing.T, m *anteroom.Manager, ticket *anteroom.Ticket) {
			h := must[*anteroom.Hold](t)(m.Mutex("k").Resume(bg, *ticket))
			t.Cleanup(func() { ok(t, h.Release(bg)) })
		},
		"resumed and released": func(t *testing.T, m *anteroom.Manager, ticket *anteroom.Ticket) {
			ok(t, must[*anteroom.Hold](t)(m.Mutex("k").Resume(bg, *ticket)).Release(bg))
		},
		"over": func(*testing.T, *anteroom.Manager, *anteroom.Ticket) { time.Sleep(time.Minute + time.Second) },
		"forced": func(t *testing.T, m *anteroom.Manager, _ *anteroom.Ticket) {
			if broken := must[[]string](t)(m.ForceRelease(bg, "k")); len(broken) != 1 {
				t.Fatal("nobody had it")
			}
		},
		"seized": func(t *testing.T, m *anteroom.Manager, _ *anteroom.Ticket) {
			h := seize(t, m)
			t.Cleanup(func() { ok(t, h.Release(bg)) })
		},
		"changed": func(_ *testing.T, _ *anteroom.Manager, ticket *anteroom.Ticket) { *ticket += "x" },
		"forged": func(_ *testing.T, _ *anteroom.Manager, ticket *anteroom.Ticket) {
			last := "A"
			if strings.HasSuffix(string(*ticket), last) {
				last = "Q"
			}
			*ticket = (*ticket)[:len(*ticket)-1] + anteroom.Ticket(last)
		},
		"empty": func(_ *testing.T, _ *anteroom.Manager, ticket *anteroom.Ticket) { *ticket = "" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				other, _ := manager(t, s.client(), anteroom.Config{})
				ticket := detached(t, m, time.Minute)
				spoil(t, other, &ticket)
				for _, m := range []*anteroom.Manager{m, other} {
					h, err := m.Mutex("k").Resume(bg, ticket)
					if h != nil || !errors.Is(err, anteroom.ErrNotHeld) {
						t.Errorf("%v, %v", h, err)
					}
				}
			})
		})
	}
}

// Goroutines of the process that resumes wait for the lock: the hold passes them, and they come in after it.
func TestTicket_BesideWaitersOfTheProcess(t *testing.T) {
	for _, fair := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *embedded) {
			cfg := anteroom.Config{Defaults: anteroom.LockConfig{Fair: fair, Fencing: true}}
			a, _ := manager(t, s.client(), cfg)
			b, _ := manager(t, s.client(), cfg)
			h := acquire(t, a.Mutex("k"))
			waiter := s.waiting(t, bg, b.Mutex("k"))
			ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
			s.settle()
			resumed := resume(t, b, ticket)
			s.settle()
			select {
			case <-waiter:
				t.Fatal("the waiter is in beside the resumed hold")
			default:
			}
			if tokenOf(resumed) != tokenOf(h) {
				t.Errorf("token %d, after Detach of %d", tokenOf(resumed), tokenOf(h))
			}
			ok(t, resumed.Release(bg))
			next := <-waiter
			if tokenOf(next) <= tokenOf(h) {
				t.Errorf("token %d after %d", tokenOf(next), tokenOf(h))
			}
			ok(t, next.Release(bg))
		})
	}
}

// The process that resumes gives up, or the answer is lost: the lock is resumed once or not at all, and nobody else of the process has
// it for the ticket.
func TestTicket_ALostAnswer(t *testing.T) {
	for name, fate := range map[string]faultnet.Fate{"done": faultnet.Lost, "not done": faultnet.Swallowed, "late": faultnet.Late(3 * time.Second)} {
		for _, gives := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gives up %v", name, gives), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					cfg := anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}}
					a, _ := manager(t, s.client(), cfg)
					net := s.network()
					b, _ := manager(t, s.clientOver(net), cfg)
					ok(t, must[*anteroom.Hold](t)(b.Mutex("warm").Seize(bg)).Release(bg))
					h := acquire(t, a.Mutex("k"))
					waiter := s.waiting(t, bg, b.Mutex("k"))
					ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
					s.settle()
					net.OnRequest(takeText, 1, fate)
					ctx, cancel := context.WithTimeout(bg, 10*time.Second)
					if gives {
						cancel()
						ctx, cancel = context.WithTimeout(bg, 500*time.Millisecond)
					}
					defer cancel()
					resumed, err := b.Mutex("k").Resume(ctx, ticket)
					switch {
					case err == nil: // also where the next confirmation of the place has shown it in time
						if tokenOf(resumed) != tokenOf(h) {
							t.Errorf("token %d, after Detach of %d", tokenOf(resumed), tokenOf(h))
						}
						time.Sleep(10 * time.Second)
						ok(t, resumed.Err())
						ok(t, resumed.Release(bg))
						ok(t, (<-waiter).Release(bg))
					case !gives || !errors.Is(err, anteroom.ErrUnavailable):
						t.Fatal(err)
					default:
						next := <-waiter
						if tokenOf(next) <= tokenOf(h) {
							t.Errorf("token %d after %d", tokenOf(next), tokenOf(h))
						}
						if _, err := a.Mutex("k").Resume(bg, ticket); !errors.Is(err, anteroom.ErrNotHeld) {
							t.Errorf("the ticket counts beside a hold: %v", err)
						}
						ok(t, next.Release(bg))
					}
					time.Sleep(time.Minute)
					s.nothing(t, "k")
				})
			})
		}
	}
}

// The answer to Detach is lost: it is repeated, and the ticket counts for the time that was asked for.
func TestTicket_DetachWithoutAnAnswer(t *testing.T) {
	for name, fate := range map[string]faultnet.Fate{"done": faultnet.Lost, "not done": faultnet.Swallowed} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				s.turns(t, a)
				h := acquire(t, a.Mutex("k"))
				start := time.Now()
				s.net.OnRequest("ticket.", 1, fate)
				ticket := must[anteroom.Ticket](t)(h.Detach(bg, 20*time.Second))
				time.Sleep(time.Until(start.Add(19 * time.Second)))
				resumed := resume(t, b, ticket)
				ok(t, resumed.Release(bg))
				s.settle()
				s.nothing(t, "k")
			})
		})
	}
}

// Who resumes in the process that has detached waits for the answer to that: the ticket may be still to come.
func TestTicket_ResumeBesideItsDetach(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		s.turns(t, a)
		h := acquire(t, a.Mutex("k"))
		s.net.OnRequest("ticket.", 1, faultnet.Swallowed)
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		defer cancel()
		ticket, err := h.Detach(ctx, time.Hour)
		if !errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("Detach: %v", err)
		}
		ok(t, resume(t, a, ticket).Release(bg))
		s.settle()
		s.nothing(t, "k")
	})
}

// The note of a goroutine that waits behind a Resume which gives up does not come to the ticket.
func TestTicket_GoesBackWithoutANoteOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		h := acquire(t, a.Mutex("k"))
		waiter := s.waiting(t, bg, b.Mutex("k"), anteroom.Note("behind"))
		ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Hour))
		s.settle()
		net.OnRequest(takeText, 1, faultnet.Late(800*time.Millisecond))
		ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
		defer cancel()
		if _, err := b.Mutex("k").Resume(ctx, ticket); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Fatalf("Resume: %v", err)
		}
		time.Sleep(5 * time.Second)
		info := must[anteroom.Info](t)(a.Inspect(bg, "k"))
		if len(info.Holders) != 1 || info.Holders[0].Note != "" {
			t.Errorf("%+v", info.Holders)
		}
		ok(t, resume(t, a, ticket).Release(bg))
		ok(t, (<-waiter).Release(bg))
	})
}

// What Detach refuses changes nothing, and a lost hold leaves no ticket.
func TestTicket_WhatDetachRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		if _, err := h.Detach(bg, time.Millisecond); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("too short a time: %v", err)
		}
		inner := must[*anteroom.Hold](t)(m.Mutex("k").Acquire(h.Context()))
		for _, h := range []*anteroom.Hold{h, inner} {
			if ticket, err := h.Detach(bg, time.Minute); ticket != "" || !errors.Is(err, anteroom.ErrInUse) {
				t.Errorf("one of two Holds: %v", err)
			}
			ok(t, h.Err())
		}
		ok(t, inner.Release(bg))
		s.Del("k")
		if ticket, err := h.Detach(bg, time.Minute); ticket != "" || !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("a lost hold: ticket %v, %v", ticket != "", err)
		}
		if _, err := h.Detach(bg, time.Minute); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("a released hold: %v", err)
		}
		if _, err := (*anteroom.Hold)(nil).Detach(bg, time.Minute); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("a nil hold: %v", err)
		}
	})
}

// A ticket is a secret: nobody who formats, logs or inspects sees it, and who stores it has all of it.
func TestTicket_IsASecret(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ticket := detached(t, m, time.Minute)
		secret := string(ticket)[strings.LastIndexByte(string(ticket), '.')+1:]
		var log strings.Builder
		for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(h).Info("job", "ticket", ticket)
		}
		info, err := m.Inspect(bg, "k")
		ok(t, err)
		for _, text := range []string{
			fmt.Sprint(ticket), fmt.Sprintf("%v %+v %#v %s %q", ticket, ticket, ticket, ticket, ticket), log.String(), fmt.Sprint(info), s.Dump(),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the secret is in %s", text)
			}
		}
		stored, err := json.Marshal(ticket)
		ok(t, err)
		var again anteroom.Ticket
		ok(t, json.Unmarshal(stored, &again))
		ok(t, resume(t, m, again).Release(bg))
	})
}

// Seize takes the lock ahead of all who wait, in other processes and its own, and the holder is notified.
func TestSeize(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		cfg := anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}}
		a, events := manager(t, s.client(), cfg)
		b, _ := manager(t, s.client(), cfg)
		c, _ := manager(t, s.client(), cfg)
		h := acquire(t, a.Mutex("k"))
		there := s.waiting(t, bg, c.Mutex("k"))
		here := s.waiting(t, bg, b.Mutex("k"))
		seized := seize(t, b)
		s.settle()
		if err := h.Err(); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("the holder was not notified: %v", err)
		}
		if lost := events.of(observe.EventLost); len(lost) != 1 || lost[0].Reason != observe.LostForced {
			t.Errorf("%+v", lost)
		}
		if tokenOf(seized) <= tokenOf(h) {
			t.Errorf("token %d after %d", tokenOf(seized), tokenOf(h))
		}
		time.Sleep(time.Minute)
		ok(t, seized.Err())
		ok(t, seized.Release(bg))
		ok(t, (<-there).Release(bg))
		ok(t, (<-here).Release(bg))
		_ = h.Release(bg)
		s.settle()
		s.nothing(t, "k")
	})
}

// Within its process Seize takes the lock from a Hold, and waits for an Unlock.
func TestSeize_FromItsOwnProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		lost := h.Context()
		seized := must[*anteroom.Hold](t)(mu.Seize(bg))
		if lost.Err() == nil {
			t.Error("the holder was not notified")
		}
		again := must[*anteroom.Hold](t)(mu.Seize(bg))
		if !errors.Is(seized.Err(), anteroom.ErrLost) {
			t.Errorf("seized twice: %v", seized.Err())
		}
		ok(t, again.Release(bg))
		mu.Lock()
		got := make(chan *anteroom.Hold)
		go func() { got <- must[*anteroom.Hold](t)(mu.Seize(bg)) }()
		s.settle()
		if !mu.Held() {
			t.Error("the lock was taken from a goroutine that has it by Lock")
		}
		mu.Unlock()
		ok(t, (<-got).Release(bg))
		_, _ = h.Release(bg), seized.Release(bg)
		s.settle()
		s.nothing(t, "k")
	})
}

// A free lock, one that a string or a mark keeps taken, and one by a context that has it already.
func TestSeize_WhateverHoldsIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, must[*anteroom.Hold](t)(m.Mutex("free").Seize(bg)).Release(bg))
		mu := mutex(t, m, anteroom.LockConfig{Key: "cron", MinHold: time.Hour})
		ok(t, acquire(t, mu).Release(bg))
		h := must[*anteroom.Hold](t)(mu.Seize(bg))
		inner := must[*anteroom.Hold](t)(mu.Seize(h.Context()))
		ok(t, inner.Release(bg))
		ok(t, h.Release(bg))
		ok(t, s.Set("old", "somebody"))
		if _, err := m.Mutex("old").Seize(bg); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("a string may be data: %v", err)
		}
		synctest.Wait() // the key is in use until its last command is answered
		old := mutex(t, m, anteroom.LockConfig{Key: "old", StringHolders: true})
		ok(t, must[*anteroom.Hold](t)(old.Seize(bg)).Release(bg))
		synctest.Wait()
	})
}

// Redis has said that the ticket is there, and it is worth nothing when the lock is to be taken.
func TestTicket_IsWorthNothingAfterItWasAskedFor(t *testing.T) {
	for name, used := range map[string]bool{"used": true, "over": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				c, asked := s.client(), new(afterScript)
				c.AddHook(asked)
				b, _ := manager(t, c, anteroom.Config{})
				ok(t, resume(t, b, detached(t, a, time.Minute)).Release(bg)) // its scripts are there
				ticket := detached(t, a, time.Minute)
				var first *anteroom.Hold
				between := func() { first = resume(t, a, ticket) }
				if !used {
					time.Sleep(time.Minute - 50*time.Millisecond)
					between = func() { time.Sleep(100 * time.Millisecond) }
				}
				asked.f.Store(&between)
				if h, err := b.Mutex("k").Resume(bg, ticket); h != nil || !errors.Is(err, anteroom.ErrNotHeld) {
					t.Errorf("%v, %v", h, err)
				}
				if used {
					ok(t, first.Err())
					ok(t, first.Release(bg))
				}
			})
		})
	}
}

// The place of who resumes is confirmed while the lock is being taken for it, as when the subscription comes up just then:
// that is no reason to refuse the ticket.
func TestTicket_APlaceThatIsConfirmedMeanwhile(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, func(t *testing.T, s *embedded) {
			a, _ := manager(t, s.client(), anteroom.Config{})
			ticket := detached(t, a, time.Minute)
			net := s.network()
			net.PromptMessages()
			net.Latency(2*time.Millisecond, 2*time.Millisecond, seed)
			b, _ := manager(t, s.clientOver(net), anteroom.Config{})
			h, err := b.Mutex("k").Resume(bg, ticket)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			ok(t, h.Release(bg))
		})
	}
}
