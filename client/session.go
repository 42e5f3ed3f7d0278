package client

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/semel-dev/semel"
)

// A session shows that its process lives, by a lock on a file of its own beside the
// journal. The operating system ends the lock with the process, and not before: a
// process that is merely stopped, or slow, keeps it. The file is an empty bbolt
// database, since bbolt knows how to lock a file on every system.
//
// Sessions are begun, looked at and cleared away only while the journal itself is
// held. So nobody sees a file that is there and not locked yet.

func sessionFile(journal, session string) string { return journal + "." + session + ".lock" }

// newSession begins a session.
func newSession(journal string) (session string, lock *bbolt.DB, err error) {
	session = semel.NewID()
	lock, err = bbolt.Open(sessionFile(journal, session), 0o600, &bbolt.Options{Timeout: tryOnce, NoSync: true})
	return session, lock, err
}

// tryOnce makes bbolt try to lock a file without waiting.
const tryOnce = time.Nanosecond

// endSession ends a session.
func endSession(lock *bbolt.DB) error {
	file := lock.Path()
	err := lock.Close()
	if gone := os.Remove(file); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// sessionAlive reports whether a session may still live. What can't be found out
// counts as alive.
func sessionAlive(journal, session string) bool {
	if !semel.ValidID(session) {
		return false // no session of ours: it could name any file
	}
	return !clearDead(sessionFile(journal, session))
}

// clearDead removes the file of a dead session, and reports whether it is dead.
func clearDead(file string) bool {
	lock, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: tryOnce, NoSync: true,
		OpenFile: func(name string, _ int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(name, os.O_RDWR, mode)
		}})
	switch {
	case err == nil:
		lock.Close()
	case errors.Is(err, os.ErrNotExist):
		return true
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		// It was locked for us, and is only half written: its process died at that.
	default:
		return false
	}
	os.Remove(file)
	return true
}

// sweepSessions clears away what dead processes have left.
func sweepSessions(journal string) {
	files, err := filepath.Glob(globEscape(journal) + ".*.lock")
	if err != nil {
		return
	}
	for _, file := range files {
		clearDead(file)
	}
}

// globEscape takes the meaning from the characters that a pattern has.
func globEscape(path string) string {
	var b []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			if path[i] != '\\' || filepath.Separator != '\\' {
				b = append(b, '\\')
			}
		}
		b = append(b, path[i])
	}
	return string(b)
}
