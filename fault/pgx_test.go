package fault

import (
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// database is just enough of PostgreSQL for pgx: it remembers statements.
type database struct {
	*lines
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d := &database{&lines{ln: ln}}
	d.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			d.wg.Go(func() { d.serve(c) })
		}
	})
	t.Cleanup(func() { ln.Close(); d.wg.Wait() })
	return d
}

func (d *database) serve(c net.Conn) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	status := byte('I')
	for b.Flush() == nil {
		msg, err := b.Receive()
		if err != nil {
			return
		}
		q, ok := msg.(*pgproto3.Query)
		if !ok {
			return
		}
		status = map[string]byte{"begin": 'T', "commit": 'I'}[q.String]
		if status == 0 {
			status = 'T'
		}
		d.mu.Lock()
		d.got = append(d.got, q.String)
		d.mu.Unlock()
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte(strings.ToUpper(q.String))})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: status})
	}
}

// A commit that is done and not known, one that never arrived, and one of
// which only half did: pgx reports the same kind of error for all three.
func TestTCPProxyWithPgx(t *testing.T) {
	for rule, committed := range map[string]bool{
		"lose-answer contains=COMMIT": true,
		"cut-before contains=COMMIT":  false,
		"cut-during contains=COMMIT":  false,
	} {
		t.Run(rule, func(t *testing.T) {
			noLeaks(t)
			d := newDatabase(t)
			p := tcpProxy(t, d.ln.Addr().String(), nil)
			ctx := ctxFor(t)
			conn, err := pgx.Connect(ctx, "postgres://u@"+p.Addr()+"/db?sslmode=disable")
			must(t, err)
			defer conn.Close(ctx)
			must(t, p.SetRules(MustRule(rule))) // also for connections that are open
			tx, err := conn.Begin(ctx)
			must(t, err)
			_, err = tx.Exec(ctx, "insert")
			must(t, err)
			if err := tx.Commit(ctx); err == nil {
				t.Error("the commit was confirmed")
			}
			must(t, p.WaitFaults(ctx, 1))
			want := "begin,insert"
			if committed {
				want += ",commit"
			}
			if d.lines.lines() != want {
				t.Errorf("the database got %q, want %q", d.lines.lines(), want)
			}
		})
	}
}
