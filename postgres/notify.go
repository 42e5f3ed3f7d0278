package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// channel is what nodes listen on.
const channel = "semel_work"

// A notifier tells other nodes that there may be new work: after the commit, on
// its own, and at most every notifyEvery. (A NOTIFY inside the commit would make
// all commits of the database wait for one lock.) It is a hint: polling is what
// makes work found.
type notifier struct {
	news chan struct{}
	life context.Context // ends when the store is closed
	stop context.CancelFunc
	done sync.WaitGroup
}

const notifyEvery = 50 * time.Millisecond

func newNotifier(s *Store) *notifier {
	n := &notifier{news: make(chan struct{}, 1)}
	n.life, n.stop = context.WithCancel(context.Background())
	if !s.opts.NoNotify {
		n.done.Go(func() { n.run(n.life, s) })
	}
	return n
}

func (n *notifier) run(ctx context.Context, s *Store) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.news:
		}
		sending, cancel := context.WithTimeout(ctx, s.opts.Timeout)
		_, err := s.pool.Exec(sending, "NOTIFY "+channel)
		cancel()
		if aborted(err) { // this engine has no NOTIFY
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(notifyEvery):
		}
	}
}

// inserted tells of new work that is due at once.
func (n *notifier) inserted(members []semel.Insertion, out []semel.Inserted) {
	for i, o := range out {
		if o.Verdict == semel.Created && members[i].State == semel.Accepted && members[i].Due <= 0 {
			select {
			case n.news <- struct{}{}:
			default: // one is waiting already
			}
			return
		}
	}
}

func (n *notifier) close() {
	n.stop()
	n.done.Wait()
}

// Notifications returns a channel that holds a signal when any node may have
// recorded new work, until ctx ends or the store is closed. It has a connection of its own, and makes a
// new one when that breaks. Signals may be lost, and may come for nothing; where
// the database can't LISTEN there are none. It is made for worker.Options.Wake.
func (s *Store) Notifications(ctx context.Context) <-chan struct{} {
	news := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	ended := context.AfterFunc(s.notifier.life, cancel)
	go func() {
		defer cancel()
		defer ended()
		for ctx.Err() == nil {
			if aborted(s.listen(ctx, news)) {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return news
}

func (s *Store) listen(ctx context.Context, news chan<- struct{}) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return &unsentError{err}
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		// What came before we listened is news, too.
		select {
		case news <- struct{}{}:
		default:
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}
