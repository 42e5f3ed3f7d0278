package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// crash is what a client dies of that dies at a step.
type crash struct{}

// story is one intent in a world where everything goes wrong.
type story struct {
	*rapid.T
	shop    *shop
	journal Journal
	id      string
}

func contracts() []contract.Contract {
	both := plain()
	both.LookUp = contract.LookUp{By: contract.ByKey, ConsistentAfter: contract.Duration(time.Second), AbsentAfter: contract.Duration(2 * time.Minute)}
	hasty := plain()
	hasty.Retention.Minimum = contract.Duration(3 * time.Minute)
	return []contract.Contract{plain(), both, hasty, preset(contract.Queryable), preset(contract.Opaque), preset(contract.IETF)}
}

func (s *story) fate() fate {
	f := fate{status: rapid.SampledFrom([]int{0, 0, 0, 201, 201, 400, 401, 403, 409, 422, 429, 500, 502, 503}).Draw(s.T, "status")}
	switch f.status {
	case 0:
		f.dial = rapid.Bool().Draw(s.T, "dial")
		f.arrives = !f.dial && rapid.Bool().Draw(s.T, "arrives")
		if f.arrives && rapid.Bool().Draw(s.T, "late") { // what is given up may still arrive
			f.late = time.Duration(rapid.IntRange(1, 25).Draw(s.T, "seconds")) * time.Second
		}
	case 201:
		f.arrives = true
	case 500, 502, 503:
		f.arrives = rapid.Bool().Draw(s.T, "arrives")
	case 429:
		f.header = http.Header{"Retry-After": {"3"}}
	}
	return f
}

// call makes one call of a client, which may die in it, and returns its outcome.
func (s *story) call(do func(*Client, context.Context) (Outcome, error)) (out Outcome) {
	o := &Options{Quota: &retryhttp.Quota{Reserve: 1e6}, Budget: time.Duration(rapid.IntRange(1, 200).Draw(s.T, "budget")) * time.Second}
	c, err := New(s.shop.api(), s.journal, o)
	if err != nil {
		s.Fatal(err)
	}
	left := rapid.IntRange(0, 40).Draw(s.T, "dies after")
	step = func(string) {
		if left--; left == 0 {
			panic(crash{})
		}
	}
	defer func() {
		step = func(string) {}
		switch p := recover(); p.(type) {
		case nil:
		case crash:
			out = nil
			s.journal = reborn(s.journal)
		default:
			panic(p)
		}
	}()
	out, err = do(c, context.Background())
	if err != nil {
		s.Fatalf("error %v", err)
	}
	return out
}

// whatever happens to transmissions, look-ups and processes: one effect at most, and
// no outcome says what is not so.
func TestNothingIsClaimedThatIsNotSo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failed any // rapid fails by a panic, which has to leave the bubble
		synctest.Test(t, func(*testing.T) {
			defer func() { failed = recover() }()
			s := &story{T: rt, journal: NewMemoryJournal()}
			s.shop = newShop(contracts()[rapid.IntRange(0, len(contracts())-1).Draw(rt, "contract")])
			list := make([]fate, rapid.IntRange(1, 12).Draw(rt, "sends"))
			for i := range list {
				list[i] = s.fate()
			}
			s.shop.script = func(n int) fate { return list[min(n, len(list))-1] }
			deafness := rapid.IntRange(0, 3).Draw(rt, "look-ups lost")
			random := rand.New(rand.NewPCG(uint64(deafness), 1))
			s.shop.looked = func(int) bool { return random.IntN(4) >= deafness }
			s.shop.shown = time.Duration(rapid.IntRange(0, 900).Draw(rt, "shown after ms")) * time.Millisecond

			in := order()
			in.ID = semel.NewID()
			s.id = in.ID
			begun := false
			s.call(func(c *Client, ctx context.Context) (Outcome, error) {
				_, err := c.Begin(ctx, in)
				begun = true
				return nil, err
			})
			var last Outcome
			for range rapid.IntRange(1, 6).Draw(rt, "calls") {
				what := rapid.SampledFrom([]string{"submit", "submit", "do", "wait", "abandon"}).Draw(rt, "call")
				out := s.call(func(c *Client, ctx context.Context) (Outcome, error) {
					list, err := c.Pending(ctx)
					if err != nil || len(list) == 0 { // it died before it was begun
						if begun {
							rt.Fatal("a begun intent is gone")
						}
						_, err := c.Begin(ctx, in)
						return nil, err
					}
					begun = true
					switch what {
					case "wait":
						return c.Wait(ctx, s.id)
					case "abandon":
						return c.Abandon(ctx, s.id)
					}
					return c.Submit(ctx, s.id)
				})
				if decided(last) && out != nil && !sameEnd(last, out) {
					rt.Fatalf("first %+v, then %+v", last, out)
				}
				if out != nil || !decided(last) { // what a dead client had known is lost
					last = out
				}
				time.Sleep(time.Duration(rapid.IntRange(0, 90).Draw(rt, "pause")) * time.Second)
			}
			time.Sleep(time.Hour) // everything that is on its way arrives
			s.judge(last)
			if c, err := New(s.shop.api(), s.journal, nil); err != nil {
				rt.Fatal(err)
			} else if out, err := c.Wait(context.Background(), s.id); err == nil {
				s.judge(out)
			} else if begun {
				rt.Fatal(err)
			}
		})
		if failed != nil {
			panic(failed)
		}
	})
}

func sameEnd(a, b Outcome) bool {
	x, ok := a.(Settled)
	y, also := b.(Settled)
	return ok == also && x.Operation.State == y.Operation.State
}

// judge holds the last outcome against what has really happened.
func (s *story) judge(out Outcome) {
	n, sends, log := s.shop.happened(s.id)
	fail := func(why string) {
		s.Helper()
		s.Fatalf("%s: %d effects by %d sends under %s; outcome %+v\n%v", why, n, sends, s.shop.contract.Name, out, log)
	}
	if n > 1 {
		fail("it happened more than once")
	}
	switch o := out.(type) {
	case Settled:
		if want := map[semel.State]int{semel.Succeeded: 1, semel.Abandoned: 0}[o.Operation.State]; n != want {
			fail("settled as " + string(o.Operation.State))
		}
	case Rejected:
		if n > 0 {
			fail("rejected, and it happened")
		}
	case Unconfirmed:
		if n > 0 && (o.Since.IsZero() || o.Next == NextSubmit) {
			fail("nothing is said to have happened")
		}
		if o.Attempts > sends+6 || o.Attempts < sends-6 {
			fail("attempts are not counted")
		}
	}
}
