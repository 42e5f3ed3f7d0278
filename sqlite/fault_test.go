package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

var ctx = context.Background()

func openTest(t *testing.T, options *Options) *Store {
	t.Helper()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "semel.db"), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func insertion(id string) semel.Insertion {
	return semel.Insertion{Key: semel.Key{Account: "acme", Kind: "note", ID: id}, State: semel.Accepted, Params: []byte(`{}`), Owner: "owner-" + id}
}

var errLost = errors.New("the answer is lost")

// A COMMIT whose answer is lost, after it was done or before.
func loseCommits(s *Store, done bool) {
	s.commit = func(commit func() error) error {
		if done {
			if err := commit(); err != nil {
				return err
			}
		}
		return errLost
	}
}

func heal(s *Store) { s.commit = func(commit func() error) error { return commit() } }

func recorded(t *testing.T, err error, want semel.Recorded) {
	t.Helper()
	var e *semel.Error
	if !errors.As(err, &e) || e.Code != semel.CodeUnavailable || e.WasRecorded() != want {
		t.Fatalf("got %v, recorded %q; want unavailable, %q", err, semel.AsError("", err).WasRecorded(), want)
	}
}

func TestLostCommitOfInsert(t *testing.T) {
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprintf("done=%v", done), func(t *testing.T) {
			s := openTest(t, nil)
			known := insertion("known")
			s.Insert(ctx, []semel.Insertion{known})
			loseCommits(s, done)
			again, deadline := insertion("known"), insertion("late")
			again.Owner, deadline.AcceptUntil = "another", time.Now().Add(-time.Hour)
			out, err := s.Insert(ctx, []semel.Insertion{insertion("new"), again, deadline, insertion("new")})
			if err != nil {
				t.Fatal(err)
			}
			if out[1].Verdict != semel.Exists || out[2].Verdict != semel.PastDeadline {
				t.Errorf("members that wrote nothing: %+v, %+v", out[1], out[2])
			}
			if done {
				if out[0].Verdict != semel.Created || out[0].Operation.Owner != "owner-new" {
					t.Errorf("it was committed: %+v", out[0])
				}
			} else {
				recorded(t, out[0].Err, semel.RecordedNo)
			}
			heal(s)
			found, err := s.Get(ctx, []semel.Key{insertion("new").Key})
			if err != nil || (found[0].Operation != nil) != done {
				t.Errorf("the row: %+v, %v", found, err)
			}
		})
	}
}

// The failed transaction is gone, and somebody else created the key before it was
// read back: then it exists.
func TestLostCommitAndARival(t *testing.T) {
	s := openTest(t, nil)
	rival := insertion("x")
	rival.Owner = "rival"
	if _, err := s.Insert(ctx, []semel.Insertion{rival}); err != nil {
		t.Fatal(err)
	}
	told := []semel.Inserted{{Verdict: semel.Created, Operation: &semel.Operation{}}}
	out, err := s.readBackInserts(ctx, []semel.Insertion{insertion("x")}, told, &commitError{errLost})
	if err != nil || out[0].Verdict != semel.Exists || out[0].Operation.Owner != "rival" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestLostCommitOfApply(t *testing.T) {
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprintf("done=%v", done), func(t *testing.T) {
			s := openTest(t, nil)
			out, err := s.Insert(ctx, []semel.Insertion{insertion("a"), insertion("b")})
			if err != nil {
				t.Fatal(err)
			}
			change := func(i int, revision int64) semel.Change {
				return semel.Change{Key: out[i].Operation.Key, Revision: revision, Owner: fmt.Sprintf("mine-%d", i), State: semel.Abandoned,
					Work: semel.WorkDone, Retain: time.Hour}
			}
			loseCommits(s, done)
			got, err := s.Apply(ctx, []semel.Change{change(0, 1), change(1, 7)})
			if err != nil {
				t.Fatal(err)
			}
			if got[1].Applied || got[1].Err != nil {
				t.Errorf("a stale member: %+v", got[1])
			}
			if done && (!got[0].Applied || got[0].Operation.State != semel.Abandoned) {
				t.Errorf("it was committed: %+v", got[0])
			}
			if !done {
				recorded(t, got[0].Err, semel.RecordedNo)
			}
			heal(s)
			if again, err := s.Apply(ctx, []semel.Change{change(0, 1)}); err != nil || again[0].Applied == done {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// The change was committed, and the row was changed again before it was read
// back: nobody can say whose revision it was.
func TestLostCommitAndALaterChange(t *testing.T) {
	s := openTest(t, nil)
	out, err := s.Insert(ctx, []semel.Insertion{insertion("a")})
	if err != nil {
		t.Fatal(err)
	}
	c := semel.Change{Key: out[0].Operation.Key, Revision: 1, Owner: "mine", State: semel.Accepted}
	later := c
	later.Owner, later.Revision = "later", 2
	for _, c := range []semel.Change{c, later} {
		if got, err := s.Apply(ctx, []semel.Change{c}); err != nil || !got[0].Applied {
			t.Fatal(got, err)
		}
	}
	got, err := s.readBackChanges(ctx, []semel.Change{c}, []semel.Applying{{Applied: true}}, &commitError{errLost})
	if err != nil {
		t.Fatal(err)
	}
	recorded(t, got[0].Err, semel.RecordedUnknown)
}

func TestLostCommitOfClaim(t *testing.T) {
	req := semel.ClaimRequest{Worker: "w", Max: 10, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Hour, BeginNow: true}}}
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprintf("done=%v", done), func(t *testing.T) {
			s := openTest(t, nil)
			if _, err := s.Insert(ctx, []semel.Insertion{insertion("a"), insertion("b")}); err != nil {
				t.Fatal(err)
			}
			loseCommits(s, done)
			got, err := s.Claim(ctx, req)
			if done && (err != nil || len(got) != 2) {
				t.Fatalf("it was committed: %d, %v", len(got), err)
			}
			if !done {
				recorded(t, err, semel.RecordedNo)
			}
			heal(s)
			again, err := s.Claim(ctx, req)
			if want := map[bool]int{true: 0, false: 2}[done]; err != nil || len(again) != want {
				t.Errorf("claimed again: %d, %v; want %d", len(again), err, want)
			}
		})
	}
}

// Writes that may be repeated say that they don't know.
func TestLostCommitOfTheRest(t *testing.T) {
	s := openTest(t, nil)
	key := insertion("a").Key
	if _, err := s.Insert(ctx, []semel.Insertion{insertion("a")}); err != nil {
		t.Fatal(err)
	}
	loseCommits(s, true)
	_, err := s.Renew(ctx, []semel.Renewal{{Key: key, Token: 1}})
	recorded(t, err, semel.RecordedUnknown)
	recorded(t, s.KeepLate(ctx, semel.Late{Key: key, Token: 1}), semel.RecordedUnknown)
	recorded(t, s.RecordAttempts(ctx, []semel.Attempt{{Key: key, ID: "x"}}), semel.RecordedUnknown)
	recorded(t, s.SaveDefinition(ctx, "note", "v", []byte("d")), semel.RecordedUnknown)
	_, err = s.Purge(ctx, []semel.PurgeRequest{{Kind: "note", Retention: time.Hour, Max: 10}})
	recorded(t, err, semel.RecordedUnknown)
}

// pragma runs a pragma on the writing connection.
func pragma(t *testing.T, s *Store, text string) {
	t.Helper()
	w := <-s.writer
	defer func() { s.writer <- w }()
	if err := w.script(ctx, text); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, code semel.Code, words string) {
	t.Helper()
	var e *semel.Error
	if !errors.As(err, &e) || e.Code != code || e.WasRecorded() != semel.RecordedNo || !strings.Contains(err.Error(), words) {
		t.Fatalf("got %v, want %s with %q, recorded no", err, code, words)
	}
}

func TestFullDisk(t *testing.T) {
	s := openTest(t, nil)
	pragma(t, s, "PRAGMA max_page_count = 60")
	var known []semel.Key
	var full error
	for n := 0; n < 200 && full == nil; n++ {
		in := insertion(fmt.Sprint(n))
		in.Params = bytes.Repeat([]byte("x"), 4000)
		_, full = s.Insert(ctx, []semel.Insertion{in})
		if full == nil {
			known = append(known, in.Key)
		}
	}
	refused(t, full, semel.CodeUnavailable, "disk is full")
	found, err := s.Get(ctx, known)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		if f.Operation == nil {
			t.Errorf("%s was acknowledged and is gone", known[i])
		}
	}
	pragma(t, s, "PRAGMA max_page_count = 100000")
	if _, err := s.Insert(ctx, []semel.Insertion{insertion("after")}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestReadOnlyFile(t *testing.T) {
	s := openTest(t, nil)
	pragma(t, s, "PRAGMA query_only = ON")
	_, err := s.Insert(ctx, []semel.Insertion{insertion("a")})
	refused(t, err, semel.CodeUnavailable, "can't be written")
	if _, err := s.Get(ctx, []semel.Key{insertion("a").Key}); err != nil {
		t.Errorf("a look-up: %v", err)
	}
}

// A member that the database refuses does not take its neighbours along.
func TestOneTooLarge(t *testing.T) {
	s := openTest(t, nil)
	w := <-s.writer
	_, err := driver.Limit(w.conn, lib.SQLITE_LIMIT_LENGTH, 100_000)
	s.writer <- w
	if err != nil {
		t.Fatal(err)
	}
	large := insertion("large")
	large.Params = bytes.Repeat([]byte("x"), 200_000)
	out, err := s.Insert(ctx, []semel.Insertion{insertion("a"), large, insertion("b")})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, out[1].Err, semel.CodeTooLarge, "larger")
	var changes []semel.Change
	for _, i := range []int{0, 2} {
		if out[i].Err != nil || out[i].Verdict != semel.Created {
			t.Fatalf("a neighbour: %+v", out[i])
		}
		c := semel.Change{Key: out[i].Operation.Key, Revision: 1, Owner: "o", State: semel.Succeeded, Work: semel.WorkDone}
		if i == 0 {
			c.Result = large.Params
		}
		changes = append(changes, c)
	}
	done, err := s.Apply(ctx, changes)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, done[0].Err, semel.CodeTooLarge, "larger")
	if !done[1].Applied {
		t.Errorf("a neighbour: %+v", done[1])
	}
}

// A connection that the driver gave up is replaced.
func TestMend(t *testing.T) {
	s := openTest(t, &Options{Readers: 1})
	for _, pool := range []chan *session{s.writer, s.readers} {
		c := <-pool
		c.conn.Close()
		pool <- c
	}
	key := insertion("a").Key
	s.Insert(ctx, []semel.Insertion{insertion("a")}) // these may fail
	s.Get(ctx, []semel.Key{key})
	if _, err := s.Insert(ctx, []semel.Insertion{insertion("a")}); err != nil {
		t.Errorf("insert: %v", err)
	}
	if found, err := s.Get(ctx, []semel.Key{key}); err != nil || found[0].Operation == nil {
		t.Errorf("get: %+v, %v", found, err)
	}
}

// While a writer waits for the lock, the next one waits behind it, and not for the
// lock: so nobody can pass who has just had it.
func TestTurnstile(t *testing.T) {
	if !canLock {
		t.Skip("no turnstile on this system")
	}
	path := filepath.Join(t.TempDir(), "semel.db")
	open := func(wait time.Duration) *Store {
		s, err := Open(ctx, path, &Options{LockTimeout: wait})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	first, second := open(time.Minute), open(50*time.Millisecond)
	db, err := OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil) // has the lock, and has left the turnstile
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.Insert(ctx, []semel.Insertion{insertion("second")})
	refused(t, err, semel.CodeUnavailable, "another writer holds")

	done := make(chan error)
	go func() {
		_, err := first.Insert(ctx, []semel.Insertion{insertion("first")})
		done <- err
	}()
	probe := newTurnstile(path)
	defer probe.close()
	for {
		free, err := tryLock(probe.file)
		if err != nil {
			t.Fatal(err)
		}
		if !free {
			break
		}
		unlock(probe.file)
		time.Sleep(time.Millisecond) // until the first one stands in it
	}
	_, err = second.Insert(ctx, []semel.Insertion{insertion("second")})
	refused(t, err, semel.CodeUnavailable, "too many other writers wait")
	tx.Rollback()
	if err := <-done; err != nil {
		t.Errorf("the first one: %v", err)
	}
	if _, err := second.Insert(ctx, []semel.Insertion{insertion("second")}); err != nil {
		t.Errorf("the second one: %v", err)
	}
}
