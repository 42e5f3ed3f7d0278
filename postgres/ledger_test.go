package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
	"github.com/semel-dev/semel/storetest"
)

// TestLedger has the rules judged, by a clock that is not this machine's.
func TestLedger(t *testing.T) {
	url := pgtest.Database(t)
	storetest.RunLedger(t, func(t *testing.T) storetest.LedgerHarness {
		clock := storetest.NewClock()
		ledger := openLedger(t, emptySchema(t, url), clock.Now, storetest.LedgerKinds())
		return storetest.LedgerHarness{API: ledger, Ledger: ledger, Clock: clock}
	})
}

func openLedger(t *testing.T, url string, clock func() time.Time, kinds []semel.Kind) *semel.Ledger {
	store, err := postgres.Open(t.Context(), url, &postgres.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	ledger, err := semel.New(t.Context(), store, &semel.Options{Kinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	return ledger
}

// A databaseClock is the clock of one schema of a database, which can be moved: the
// schema has a statement_timestamp of its own, which is found before PostgreSQL's.
// A store there goes by it as any store does, with no clock of its own.
type databaseClock struct {
	t      *testing.T
	conn   *pgx.Conn
	schema string
	ahead  time.Duration
}

// newDatabaseClock returns the URL of an empty schema and its clock.
func newDatabaseClock(t *testing.T, database string, ahead time.Duration) (string, *databaseClock) {
	url := emptySchema(t, database)
	_, schema, _ := strings.Cut(url, "search_path=")
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	c := &databaseClock{t: t, conn: conn, schema: schema}
	c.exec(`CREATE TABLE %s.ahead (span interval NOT NULL)`)
	c.exec(`INSERT INTO %s.ahead VALUES ('0')`)
	c.exec(`CREATE FUNCTION %s.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS
		'SELECT pg_catalog.statement_timestamp() + span FROM %[1]s.ahead'`)
	c.set(ahead)
	return url + ",pg_catalog", c
}

func (c *databaseClock) exec(sql string) {
	c.t.Helper()
	if _, err := c.conn.Exec(c.t.Context(), fmt.Sprintf(sql, c.schema)); err != nil {
		c.t.Fatal(err)
	}
}

// set says how far the database's clock is ahead of this process's.
func (c *databaseClock) set(ahead time.Duration) {
	c.t.Helper()
	c.ahead = ahead
	c.exec(fmt.Sprintf(`UPDATE %%s.ahead SET span = '%d milliseconds'`, ahead.Milliseconds()))
}

func (c *databaseClock) now() time.Time { return time.Now().Add(c.ahead) }

// Nodes whose clocks are an hour ahead of the database's, or an hour behind: no
// deadline, lease or retention ends early, and none ends late. The store has no
// Options.Clock here, as in production.
func TestNodeClocks(t *testing.T) {
	const lease, retention = time.Minute, 10 * time.Minute
	db := pgtest.Database(t)
	for name, wrong := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			url, clock := newDatabaseClock(t, db, -wrong) // this process has the wrong clock
			passed := func(d time.Duration) { t.Helper(); clock.set(d - wrong) }
			ledger := openLedger(t, url, nil, []semel.Kind{{Name: "note", Retention: retention}})
			ask := func(id string, deadline time.Duration) (semel.Acceptance, error) {
				return ledger.Accept(t.Context(), semel.Request{Key: semel.Key{Account: "acme", Kind: "note", ID: id}, AcceptUntil: clock.now().Add(deadline)})
			}
			claim := func() []semel.Lease {
				leases, err := ledger.Claim(t.Context(), semel.ClaimRequest{Worker: "w", Max: 10, Kinds: []semel.ClaimKind{{Kind: "note", Lease: lease, BeginNow: true}}})
				if err != nil {
					t.Fatal(err)
				}
				return leases
			}
			purge := func() semel.Purged {
				p, err := ledger.Purge(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			const moment = 20 * time.Second // more than the steps of this test take

			if _, err := ask("late", -time.Second); !errors.Is(err, semel.ErrDeadlinePassed) {
				t.Errorf("a second after its deadline: %v", err)
			}
			acc, err := ask("id", moment)
			if err != nil {
				t.Fatalf("before its deadline: %v", err)
			}
			if at := acc.Operation.CreatedAt; clock.now().Sub(at).Abs() > moment {
				t.Errorf("created at %v; the database's time is %v", at, clock.now())
			}
			if n := len(claim()); n != 1 {
				t.Fatalf("%d were due at once", n)
			}
			passed(lease - moment)
			if n := len(claim()); n != 0 {
				t.Error("a lease was taken away before its end")
			}
			passed(lease + time.Second)
			again := claim()
			if len(again) != 1 || again[0].Token != 2 {
				t.Fatalf("a lease that has ended: %d were claimed", len(again))
			}
			if _, err := ledger.Finish(t.Context(), again[0], semel.Ending{Outcome: semel.Applied}); err != nil {
				t.Fatal(err)
			}
			passed(lease + time.Second + retention - moment)
			if p := purge(); p != (semel.Purged{}) {
				t.Errorf("before its time: %+v", p)
			}
			if acc, err := ask("id", moment); err != nil || !acc.Replayed {
				t.Errorf("before its time: %+v, %v", acc, err)
			}
			passed(lease + time.Second + retention + time.Second)
			if p := purge(); p.Stripped != 1 {
				t.Errorf("after its time: %+v", p)
			}
			if _, err := ask("id", moment); !errors.Is(err, semel.ErrExpired) {
				t.Errorf("after its time: %v", err)
			}
		})
	}
}
