package idempotency_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel/idempotency"
)

// PostgreSQL cuts every connection right after the effect: in guarded mode the
// outcome is recorded all the same; in a transaction nothing has happened, and the
// repeat runs.
func TestConnectionsCut(t *testing.T) {
	for _, mode := range []string{"guarded", "transactional"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, "postgres")
			n := w.node(func(o *idempotency.Options, d *database) {
				if mode == "transactional" {
					o.Begin = d.begin
				}
			})
			cut := func() {
				conn, err := pgx.Connect(context.Background(), w.dsn)
				if err == nil {
					_, err = conn.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
					conn.Close(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
			runs := 0
			n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				runs++
				if mode == "transactional" {
					if err := insertOrder(r.Context(), keyIn(r)); err != nil {
						http.Error(w, err.Error(), 500)
						return
					}
				}
				if runs == 1 {
					cut()
				}
				w.WriteHeader(201)
				fmt.Fprint(w, runs)
			})
			key := newKey()
			first := n.send("POST", "/orders", key, `{}`)
			var again answer
			w.eventually("the repeat is answered", func() bool {
				again = n.send("POST", "/orders", key, `{}`)
				return again.status == 201
			})
			rows := n.count("SELECT count(*) FROM shop_order WHERE id = '" + key + "'")
			if mode == "guarded" && (first.status != 201 || again.body != "1" || !again.replayed() || runs != 1) {
				t.Errorf("first %s\nagain %s\n%d runs", first, again, runs)
			}
			if mode == "transactional" && (first.status != 503 || again.replayed() && runs != 2 || rows != 1) {
				t.Errorf("first %s\nagain %s\n%d runs, %d rows", first, again, runs, rows)
			}
		})
	}
}
