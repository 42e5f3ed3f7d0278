package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// in a bubble, time is not the machine's.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func (s *shop) check(t *testing.T, in string, effects, sends int) {
	t.Helper()
	if n, tried, log := s.happened(in); n != effects || tried != sends {
		t.Errorf("%d effects by %d sends; want %d by %d: %v", n, tried, effects, sends, log)
	}
}

func TestAnyAPI(t *testing.T) {
	bubble(t, "idempotent, answer lost", func(t *testing.T) {
		s := newShop(plain(), lost, answered)
		j := NewMemoryJournal()
		in := order()
		in.ID = "cart-17"
		out, err := s.client(t, j, nil).Do(t.Context(), in)
		set := is[Settled](t, out, err)
		if set.Operation.State != semel.Succeeded || set.Operation.Key.ID != "cart-17" || string(set.Operation.Result) != `{"order":1}` || set.Answer.Status != 201 {
			t.Errorf("%+v", set)
		}
		s.check(t, "cart-17", 1, 2)
		empty(t, j)
	})
	bubble(t, "idempotent, no answer ever", func(t *testing.T) {
		s := newShop(plain(), lost)
		c := s.client(t, nil, &Options{Budget: time.Minute})
		start := time.Now()
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		u := is[Unconfirmed](t, out, err)
		if u.Next != NextAsk || u.Attempts < 5 || !u.Since.Equal(start) || u.Operation != nil || u.Evidence.Open != u.Attempts {
			t.Errorf("%+v", u)
		}
		if took := time.Since(start); took > time.Minute || took < 50*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, "idempotent, attempts are limited", func(t *testing.T) {
		s := newShop(plain(), lost, vanished, lost)
		c := s.client(t, nil, &Options{MaxAttempts: 2})
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		if u := is[Unconfirmed](t, out, err); u.Next != NextAsk || u.Attempts != 2 {
			t.Errorf("%+v", u)
		}
		s.check(t, e.ID, 1, 2)
	})
	bubble(t, "idempotent, until the key may be forgotten", func(t *testing.T) {
		c := plain()
		c.Retention.Minimum = contract.Duration(time.Hour)
		s := newShop(c, lost)
		j := NewMemoryJournal()
		e, _ := s.client(t, j, nil).Begin(t.Context(), order())
		out, err := s.client(t, j, nil).Submit(t.Context(), e.ID)
		is[Unconfirmed](t, out, err)
		time.Sleep(50 * time.Minute) // of the bubble
		out, err = s.client(t, j, nil).Submit(t.Context(), e.ID)
		if u := is[Unconfirmed](t, out, err); u.Next != NextAsk {
			t.Errorf("%+v", u)
		}
		time.Sleep(7 * time.Minute)
		for range 2 {
			out, err = s.client(t, j, &Options{Budget: 10 * time.Minute}).Submit(t.Context(), e.ID)
			u := is[Unconfirmed](t, out, err)
			if u.Next != NextPerson || !strings.Contains(u.Reason, "keep the key no longer") {
				t.Errorf("%+v", u)
			}
		}
		last := s.log[len(s.log)-1]
		if at, _ := time.ParseDuration(strings.TrimPrefix(last, "send@")); at > 59*time.Minute {
			t.Errorf("sent at %v", at)
		}
	})
	bubble(t, "opaque, answer lost", func(t *testing.T) {
		s := newShop(preset(contract.Opaque), lost)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		for range 2 {
			out, err := c.Submit(t.Context(), e.ID)
			if u := is[Unconfirmed](t, out, err); u.Next != NextPerson || u.Attempts != 1 {
				t.Errorf("%+v", u)
			}
		}
		s.check(t, e.ID, 1, 1)
	})
	bubble(t, "opaque, never sent", func(t *testing.T) {
		s := newShop(preset(contract.Opaque), refused, refused, answered)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		is[Settled](t, out, err)
		s.check(t, e.ID, 1, 3)
	})
	bubble(t, "opaque, nobody there", func(t *testing.T) {
		s := newShop(preset(contract.Opaque), refused)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		if u := is[Unconfirmed](t, out, err); u.Next != NextSubmit || !u.Since.IsZero() || u.Evidence.Outcome() != contract.OutcomeNotApplied {
			t.Errorf("%+v", u)
		}
		out, err = c.Abandon(t.Context(), e.ID) // nothing has arrived, so that is easy
		if set := is[Settled](t, out, err); set.Operation.State != semel.Abandoned {
			t.Errorf("%+v", set)
		}
	})
	bubble(t, "opaque, refused after a lost answer", func(t *testing.T) {
		s := newShop(preset(contract.Opaque), lost)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		is[Unconfirmed](t, out, err)
		out, err = c.Abandon(t.Context(), e.ID)
		if u := is[Unconfirmed](t, out, err); u.Next != NextPerson {
			t.Errorf("%+v", u)
		}
		s.check(t, e.ID, 1, 1)
	})
	bubble(t, "refused", func(t *testing.T) {
		s := newShop(plain(), fate{status: 422}, answered)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		if r := is[Rejected](t, out, err); r.Problem.Status != 422 || r.Problem.Code != "refused" || r.Answer.Status != 422 {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, "asked to come later", func(t *testing.T) {
		c := plain()
		c.Answers.NothingHappened = []contract.Match{{Status: 429}}
		s := newShop(c, fate{status: 429, header: http.Header{"Retry-After": {"30"}}}, answered)
		cl := s.client(t, nil, nil)
		e, _ := cl.Begin(t.Context(), order())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		out, err := cl.Submit(ctx, e.ID)
		if u := is[Unconfirmed](t, out, err); u.Next != NextSubmit || time.Since(s.start) > 0 {
			t.Errorf("it slept into the deadline: %v, %+v", time.Since(s.start), u)
		}
		s = newShop(c, fate{status: 429, header: http.Header{"Retry-After": {"30"}}}, answered)
		cl = s.client(t, nil, nil)
		out, err = cl.Do(t.Context(), order())
		is[Settled](t, out, err)
		if took := time.Since(s.start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("it came after %v", took)
		}
	})
	bubble(t, "in progress", func(t *testing.T) {
		s := newShop(plain(), lost, fate{arrives: true, status: 409}, fate{arrives: true, status: 409}, answered)
		cl := s.client(t, nil, nil)
		e, _ := cl.Begin(t.Context(), order())
		out, err := cl.Submit(t.Context(), e.ID)
		is[Settled](t, out, err)
		s.check(t, e.ID, 1, 4)
		if took := time.Since(s.start); took < 2*time.Second {
			t.Errorf("it asked again too early: %v", s.log)
		}
	})
}

func TestAPIThatCanBeAsked(t *testing.T) {
	queryable := preset(contract.Queryable) // shows within 1 s; absent counts after 1 min
	bubble(t, "answer lost", func(t *testing.T) {
		s := newShop(queryable, lost)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		is[Settled](t, out, err)
		s.check(t, e.ID, 1, 1)
	})
	bubble(t, "never arrived", func(t *testing.T) {
		s := newShop(queryable, vanished, answered)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		is[Settled](t, out, err)
		s.check(t, e.ID, 1, 2)
		if took := time.Since(s.start); took < time.Minute || took > 70*time.Second {
			t.Errorf("%v", s.log)
		}
	})
	bubble(t, "arrives late", func(t *testing.T) {
		s := newShop(queryable, fate{arrives: true, late: 40 * time.Second})
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		is[Settled](t, out, err)
		s.check(t, e.ID, 1, 1)
	})
	bubble(t, "killed before it was sent", func(t *testing.T) {
		s := newShop(queryable, answered)
		j := NewMemoryJournal()
		c := s.client(t, j, nil)
		in, err := c.api.complete(order())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.begin(t.Context(), in, true); err != nil { // begun, marked, dead
			t.Fatal(err)
		}
		j = reborn(j)
		out, err := s.client(t, j, nil).Submit(t.Context(), in.ID)
		is[Settled](t, out, err)
		// Nobody knows that it was not sent. It could have begun at the last moment.
		if took := time.Since(s.start); took < 90*time.Second {
			t.Errorf("%v", s.log)
		}
		s.check(t, in.ID, 1, 1)
	})
	bubble(t, "abandoned", func(t *testing.T) {
		s := newShop(queryable, vanished)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := c.Submit(ctx, e.ID)
		is[Unconfirmed](t, out, err)
		out, err = c.Abandon(t.Context(), e.ID) // there is no way to cancel, but a proof of absence
		if set := is[Settled](t, out, err); set.Operation.State != semel.Abandoned {
			t.Errorf("%+v", set)
		}
		if time.Since(s.start) < time.Minute {
			t.Error("absence was believed too early")
		}
		s.check(t, e.ID, 0, 1)
	})
	bubble(t, "abandoned too late", func(t *testing.T) {
		s := newShop(queryable, lost)
		s.looked = func(int) bool { return false }
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		is[Unconfirmed](t, out, err)
		s.looked = nil
		out, err = c.Abandon(t.Context(), e.ID)
		if set := is[Settled](t, out, err); set.Operation.State != semel.Succeeded {
			t.Errorf("%+v", set)
		}
	})
	bubble(t, "both idempotent and queryable", func(t *testing.T) {
		both := plain()
		both.LookUp = contract.LookUp{By: contract.ByKey}
		s := newShop(both, vanished, vanished, answered)
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		is[Settled](t, out, err)
		got := strings.Join(s.log, " ")
		if want := "send look send look send"; strings.Join(slices.Collect(words(got)), " ") != want {
			t.Errorf("%s; want %s", got, want)
		}
		s.check(t, e.ID, 1, 3)
	})
	bubble(t, "cannot tell", func(t *testing.T) {
		s := newShop(queryable, lost)
		s.looked = func(int) bool { return false }
		c := s.client(t, nil, nil)
		e, _ := c.Begin(t.Context(), order())
		out, err := c.Submit(t.Context(), e.ID)
		if u := is[Unconfirmed](t, out, err); u.Next != NextAsk {
			t.Errorf("%+v", u)
		}
		s.check(t, e.ID, 1, 1)
		if s.looks[e.ID] > 8 { // 1 s, 2 s, 4 s … apart
			t.Errorf("looked %d times in 2 minutes", s.looks[e.ID])
		}
	})
}

// words are the words of a log without their times.
func words(log string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for w := range strings.FieldsSeq(log) {
			name, _, _ := strings.Cut(w, "@")
			if !yield(name) {
				return
			}
		}
	}
}

// An outage costs what the quota has, whatever the number of intents.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(plain(), lost)
		c := s.client(t, nil, &Options{Quota: &retryhttp.Quota{Reserve: 7}, Parallel: 50})
		for i := range 50 {
			in := order()
			in.ID = fmt.Sprint("order-", i)
			if _, err := c.Begin(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Resume(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		sends := 0
		for _, n := range s.sends {
			sends += n
		}
		if sends < 60 || sends > 50+7+25 {
			t.Errorf("50 intents were sent %d times in 2 minutes; the quota has 7 repeats, and there is one probe in 5 seconds", sends)
		}
	})
}

// A clock that was set back does not make an intent younger.
func TestClockSetBack(t *testing.T) {
	r := newRecord(Intent{ID: "x"}, &API{Name: "shop"}, time.Now())
	r.Seen = time.Now().Add(time.Hour)
	if !r.now().Equal(r.Seen) {
		t.Error("time went back")
	}
}
