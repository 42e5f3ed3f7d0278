// Package notes is the smallest service: it keeps notes, each once.
//
// A note and its operation are rows of one database and are written in one
// transaction, so there is nothing in between that could be unknown:
//
//	POST /notes   Idempotency-Key: …   {"title":"…"}   → 201 with the note
//	GET  /notes                                        → all notes
//
// Two clients save to it. [SaveOnce] makes the key before the first send, and
// keeps it. [SaveAgain] makes it inside its retry loop: it is wrong, and here to
// be seen. With a lost answer, the first saves one note and the second two.
package notes

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
	"github.com/semel-dev/semel/schema"
	"github.com/semel-dev/semel/sqlite"
)

// A Note is one note.
type Note struct {
	ID    int64  `json:"id"`
	Title string `json:"title"`
}

// A Service keeps notes in one SQLite file. It is safe for concurrent use.
type Service struct {
	// Forgetful turns deduplication off, as in a service that never had any.
	Forgetful bool

	db     *sql.DB
	store  *sqlite.Store
	ledger *semel.Ledger
}

// Open opens the service on that file.
func Open(ctx context.Context, file string) (*Service, error) {
	store, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "note", Canon: schema.JSON("note")}}})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	db, err := sqlite.OpenDB(file)
	if err == nil {
		_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, title TEXT NOT NULL)")
	}
	s := &Service{db: db, store: store, ledger: ledger}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the file.
func (s *Service) Close() error {
	errs := []error{s.ledger.Close(), s.store.Close()}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	var err error
	status := http.StatusOK
	switch {
	case r.URL.Path != "/notes":
		err = &semel.Error{Op: "notes", Code: semel.CodeNotFound, Msg: "there is /notes and nothing else"}
	case r.Method == http.MethodPost:
		status = http.StatusCreated
		answer, err = s.post(r)
	default:
		answer, err = s.Notes(r.Context())
	}
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}

func (s *Service) post(r *http.Request) (Note, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		return Note{}, err
	}
	return s.Save(r.Context(), r.Header.Get("Idempotency-Key"), body)
}

// Save saves the note in body under that key, or answers with the one that was
// saved under it.
func (s *Service) Save(ctx context.Context, id string, body []byte) (Note, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return Note{}, err
	}
	defer tx.Rollback() // does nothing after the commit
	ledger := s.ledger.In(sqlite.Tx(s.store, tx))

	if s.Forgetful {
		id = semel.NewID()
	}
	accepted, err := ledger.Accept(ctx, semel.Request{
		Key:    semel.Key{Account: "me", Kind: "note", ID: id},
		Params: body,
		Begun:  &semel.Begun{Worker: "notes", Lease: time.Minute},
	})
	if err != nil {
		return Note{}, err
	}
	var note Note
	if accepted.Replayed {
		return note, json.Unmarshal(accepted.Operation.Result, &note)
	}
	if err := json.Unmarshal(body, &note); err != nil {
		return Note{}, &semel.Error{Op: "save", Code: semel.CodeInvalid, Msg: "a note is an object with a title"}
	}
	err = tx.QueryRowContext(ctx, "INSERT INTO note (title) VALUES (?) RETURNING id", note.Title).Scan(&note.ID)
	if err != nil {
		return Note{}, err
	}
	result, err := json.Marshal(note)
	if err != nil {
		return Note{}, err
	}
	if _, err := ledger.Finish(ctx, *accepted.Lease, semel.Ending{Outcome: semel.Applied, Result: result}); err != nil {
		return Note{}, err
	}
	return note, tx.Commit()
}

// Notes returns all notes.
func (s *Service) Notes(ctx context.Context) ([]Note, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id, title FROM note ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Note{}
	for rows.Next() {
		var n Note
		if err := rows.Scan(&n.ID, &n.Title); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, rows.Err()
}
