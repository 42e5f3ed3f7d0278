package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/semel-dev/semel"
)

// JournalOptions configure [OpenJournal].
type JournalOptions struct {
	// Wait is how long a transaction waits for the transactions of other processes.
	// Defaults to 10 seconds.
	Wait time.Duration
}

// OpenJournal opens the journal in that file, and makes file and folder where they
// do not exist. Any number of processes may have it open; see the package comment.
//
// While it is open, a second file beside it, whose name ends in ".lock", shows that
// this process lives. What killed processes leave of these is removed.
func OpenJournal(path string, options *JournalOptions) (Journal, error) {
	j := &fileJournal{wait: 10 * time.Second}
	if options != nil && options.Wait > 0 {
		j.wait = options.Wait
	}
	var err error
	if j.path, err = filepath.Abs(path); err != nil {
		return nil, journalError(err)
	}
	if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
		return nil, journalError(err)
	}
	// Everything happens while the file is held: a lock of somebody who is just
	// being born must not be taken for that of a dead one.
	db, err := j.open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := j.prepare(db); err != nil {
		return nil, journalError(err)
	}
	if j.session, j.lock, err = newSession(j.path); err != nil {
		return nil, journalError(err)
	}
	return j, nil
}

// fileJournal keeps records in two buckets of a bbolt file. The file is open, and
// so locked, only during transactions. Updates that come while one is written are
// written together.
type fileJournal struct {
	path    string
	wait    time.Duration
	session string
	lock    *bbolt.DB // held while the session lives

	mu      sync.Mutex
	queue   []*update
	running bool
	closed  bool
	idle    sync.WaitGroup // writers
}

// update is one call of Update that waits to be written.
type update struct {
	id     string
	change func(*Record) (*Record, error)
	err    error
	done   chan struct{}
}

var (
	stateBucket = []byte("state")
	bodyBucket  = []byte("body")
)

// openDB is the database for one transaction, with its file.
type openDB struct {
	*bbolt.DB
	file *os.File
}

func (j *fileJournal) open() (openDB, error) {
	var db openDB
	var err error
	db.DB, err = bbolt.Open(j.path, 0o600, &bbolt.Options{Timeout: j.wait, FreelistType: bbolt.FreelistMapType, NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			db.file, err = os.OpenFile(name, flag, mode)
			return db.file, err
		}})
	if err != nil {
		return openDB{}, journalError(err)
	}
	return db, nil
}

// prepare makes the file ready for use.
func (j *fileJournal) prepare(db openDB) error {
	if runtime.GOOS != "windows" { // there, access is inherited from the folder
		if info, err := os.Stat(j.path); err != nil {
			return err
		} else if info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(j.path, 0o600); err != nil {
				return err
			}
		}
	}
	fresh := false
	err := db.View(func(tx *bbolt.Tx) error {
		fresh = tx.Bucket(stateBucket) == nil || tx.Bucket(bodyBucket) == nil
		return nil
	})
	if err == nil && fresh {
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists(stateBucket)
			if err == nil {
				_, err = tx.CreateBucketIfNotExists(bodyBucket)
			}
			return err
		})
		syncFolder(filepath.Dir(j.path))
	}
	if err != nil {
		return err
	}
	sweepSessions(j.path)
	return wipe(db, nil) // what somebody left who died between a commit and its wiping
}

// syncFolder makes the name of a new file durable, where the system can do that.
func syncFolder(dir string) {
	if f, err := os.Open(dir); err == nil {
		f.Sync()
		f.Close()
	}
}

func (j *fileJournal) Session() string { return j.session }

func (j *fileJournal) Alive(session string) bool {
	return session == j.session || sessionAlive(j.path, session)
}

func (j *fileJournal) Update(ctx context.Context, id string, change func(*Record) (*Record, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if id == "" {
		return invalid("a record needs an ID")
	}
	u := &update{id: id, change: change, done: make(chan struct{})}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return journalError(errors.New("the journal is closed"))
	}
	j.queue = append(j.queue, u)
	lead := !j.running
	if lead {
		j.running = true
		j.idle.Add(1)
	}
	j.mu.Unlock()
	if lead {
		j.write()
	}
	<-u.done // even if ctx ends: it is being written, and one should know
	return u.err
}

// write writes what is waiting. What comes meanwhile is written by a goroutine, so
// that nobody works for others without end.
func (j *fileJournal) write() {
	j.mu.Lock()
	batch := j.queue
	j.queue = nil
	j.mu.Unlock()
	j.commit(batch)
	for _, u := range batch {
		close(u.done)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) > 0 {
		go j.write()
		return
	}
	j.running = false
	j.idle.Done()
}

// commit writes a batch in one transaction, and leaves each one's error in it.
func (j *fileJournal) commit(batch []*update) {
	fail := func(err error) {
		for _, u := range batch {
			if u.err == nil {
				u.err = err
			}
		}
	}
	db, err := j.open()
	if err != nil {
		fail(err)
		return
	}
	defer db.Close()
	tx, err := db.Begin(true)
	if err != nil {
		fail(journalError(err))
		return
	}
	defer tx.Rollback() // does nothing after the commit
	free := freePages(tx)
	changed := false
	for _, u := range batch {
		var wrote bool
		wrote, u.err = apply(tx, u)
		changed = changed || wrote
	}
	if !changed {
		return
	}
	step("journal: commit")
	if err := tx.Commit(); err != nil {
		fail(journalError(err))
		return
	}
	step("journal: committed")
	// The records are what counts, and they are written. What could not be wiped now
	// is wiped when the journal is opened again.
	_ = wipe(db, free)
}

// apply carries out one update within the transaction.
func apply(tx *bbolt.Tx, u *update) (wrote bool, err error) {
	states, bodies := tx.Bucket(stateBucket), tx.Bucket(bodyBucket)
	if states == nil || bodies == nil {
		return false, journalError(errors.New("the file is no journal any more"))
	}
	id := []byte(u.id)
	var old *Record
	if state := states.Get(id); state != nil {
		old = &Record{bytes.Clone(state), bytes.Clone(bodies.Get(id))}
	}
	next, err := u.change(old.clone())
	if err != nil {
		return false, err
	}
	if next == nil {
		if old == nil {
			return false, nil
		}
		err = errors.Join(states.Delete(id), bodies.Delete(id))
		return true, journalError(err)
	}
	if old == nil || !bytes.Equal(old.State, next.State) {
		wrote = true
		err = states.Put(id, next.State)
	}
	switch {
	case err != nil:
	case next.Body == nil && old != nil && old.Body != nil:
		wrote = true
		err = bodies.Delete(id)
	case next.Body != nil && (old == nil || old.Body == nil || !bytes.Equal(old.Body, next.Body)):
		wrote = true
		err = bodies.Put(id, next.Body)
	}
	return wrote, journalError(err)
}

func (j *fileJournal) List(ctx context.Context) (map[string][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(j.path, 0o600, &bbolt.Options{Timeout: j.wait, ReadOnly: true, NoStatistics: true})
	if err != nil {
		return nil, journalError(err)
	}
	defer db.Close()
	all := map[string][]byte{}
	err = db.View(func(tx *bbolt.Tx) error {
		states := tx.Bucket(stateBucket)
		if states == nil {
			return errors.New("the file is no journal any more")
		}
		return states.ForEach(func(id, state []byte) error {
			all[string(id)] = bytes.Clone(state)
			return nil
		})
	})
	if err != nil {
		return nil, journalError(err)
	}
	return all, nil
}

func (j *fileJournal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	j.idle.Wait() // what was begun is written
	return journalError(endSession(j.lock))
}

// journalError tells an error of the file.
func journalError(err error) error {
	var known *semel.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &semel.Error{Op: "journal", Code: semel.CodeUnavailable, Recorded: semel.RecordedUnknown, Msg: "the journal can't be used", Err: err}
	if errors.Is(err, bolterrors.ErrTimeout) {
		e.Msg = "the journal is held by another process"
		e.Hint = "a transaction takes moments; is that process stopped, or is the file used as a plain bbolt database?"
		e.Recorded = semel.RecordedNo
	}
	return e
}

func invalid(format string, args ...any) *semel.Error {
	return &semel.Error{Op: "intent", Code: semel.CodeInvalid, Msg: fmt.Sprintf(format, args...)}
}
