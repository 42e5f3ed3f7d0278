package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/notes"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/internal/node"
)

// A noteRow is one row of the note table: the service of package notes, one of its
// clients, and a network between them. Its effects are notes.
type noteRow struct {
	name, title string
	fault       string // what the network does
	forgetful   bool   // the service does not deduplicate
	save        saver
	// keys has a letter for the key of each send: "aa" is the same key twice.
	keys   string
	expect Expect
	// unsafe is how the row is done wrongly; change does it.
	unsafe string
	change func(*noteRow)
}

const lostNote = "lose-answer method=POST "

func noteRows() []noteRow {
	keyInTheLoop := func(r *noteRow) { r.save = savedAgain }
	return []noteRow{
		{name: "key-in-the-loop", title: "the answer is lost; the client makes a new key for each try (the mistake)", fault: lostNote + "count=1",
			save: savedAgain, keys: "ab", expect: noted(2, 2, 2, "note 2")},
		{name: "key-before-it", title: "the answer is lost; the client has made the key before its first try", fault: lostNote + "count=1",
			save: savedOnce, keys: "aa", expect: noted(2, 1, 1, "note 1"),
			unsafe: "the client makes a new key for each try", change: keyInTheLoop},
		{name: "twice-on-purpose", title: "the user saves the same text twice, and means it",
			save: savedTwice, keys: "ab", expect: noted(2, 2, 2, "note 1, note 2")},
		{name: "other-title", title: "the same key comes again with another title",
			save: savedAndChanged, keys: "aa", expect: noted(2, 1, 1, "note 1, then refused"),
			unsafe: "the service does not deduplicate", change: func(r *noteRow) { r.forgetful = true }},
		{name: "both-lost", title: "both answers are lost", fault: lostNote + "count=2",
			save: savedOnce, keys: "aa", expect: noted(2, 1, 1, "error"),
			unsafe: "the client makes a new key for each try", change: keyInTheLoop},
		{name: "forgetful-service", title: "the answer is lost; the service does not deduplicate (the mistake)", fault: lostNote + "count=1", forgetful: true,
			save: savedOnce, keys: "aa", expect: noted(2, 2, 2, "note 2")},
		{name: "lost-before", title: "control: the request is lost before the write", fault: "cut-before method=POST count=1",
			save: savedOnce, keys: "aa", expect: noted(2, 1, 1, "note 1")},
	}
}

func noted(sends, operations, notes int, visible string) Expect {
	return Expect{Sends: sends, Operations: operations, Effects: notes, Most: notes, Visible: visible}
}

// noteTable is the note table: what becomes of a note when the answer is lost.
func noteTable() []Scenario {
	var all []Scenario
	for _, row := range noteRows() {
		all = append(all, Scenario{Name: "notes-" + row.name, Group: "notes", Title: "a note: " + row.title, Unsafe: row.unsafe, Expect: row.expect,
			run: func(s *stage) (Counts, error) {
				r := row
				if s.unsafe {
					r.change(&r)
				}
				return r.run(s)
			}})
	}
	return all
}

// run plays the row over real HTTP. The notes are in a SQLite file, whatever
// database the lab uses: that is what the service has.
func (r noteRow) run(s *stage) (c Counts, err error) {
	file := filepath.Join(s.dir, "notes.db")
	service, err := notes.Open(s.ctx, file)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	service.Forgetful = r.forgetful
	url, err := s.serveHere(service)
	if err != nil {
		return c, err
	}
	rules, err := fault.ParseRules(r.fault)
	if err != nil {
		return c, err
	}
	wire := fault.NewTransport(&http.Transport{}, rules...)
	s.keep(wire)
	if c.Visible, err = r.save(s.ctx, &http.Client{Transport: wire}, url); err != nil {
		c.Visible = "error"
	}
	if c.Operations, err = recorded(s.ctx, file, "me"); err != nil {
		return c, err
	}
	saved, err := service.Notes(s.ctx)
	c.Sends, c.Effects = len(wire.Log()), len(saved)
	if keys := lettered(wire.Log()); keys != r.keys {
		c.complain("the keys of the sends are %q, want %q", keys, r.keys)
	} else {
		c.Notes = append(c.Notes, "keys "+keys)
	}
	return c, err
}

// lettered is a letter for the key of each send, the same for the same key; a send
// without a key is a dash.
func lettered(sends []fault.Entry) string {
	letters := map[string]string{"": "-"}
	var text strings.Builder
	for _, e := range sends {
		if letters[e.Key] == "" {
			letters[e.Key] = string(rune('a' + len(letters) - 1))
		}
		text.WriteString(letters[e.Key])
	}
	return text.String()
}

// serveHere serves a handler from this process until the end.
func (s *stage) serveHere(handler http.Handler) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	s.keep(server)
	go server.Serve(listener) // until Close
	return "http://" + listener.Addr().String(), nil
}

// recorded counts the operations of an account in a database.
func recorded(ctx context.Context, database, account string) (n int, err error) {
	store, err := node.OpenStore(ctx, database, "")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	page, err := store.List(ctx, semel.Query{Accounts: []string{account}, Size: 100})
	return len(page.Operations), err
}

// A saver saves notes with one of the clients, and returns what its caller gets.
type saver func(ctx context.Context, client *http.Client, url string) (string, error)

func named(n notes.Note, err error) (string, error) { return fmt.Sprint("note ", n.ID), err }

func savedOnce(ctx context.Context, client *http.Client, url string) (string, error) {
	return named(notes.SaveOnce(ctx, client, url, "milk"))
}

func savedAgain(ctx context.Context, client *http.Client, url string) (string, error) {
	return named(notes.SaveAgain(ctx, client, url, "milk"))
}

func savedTwice(ctx context.Context, client *http.Client, url string) (string, error) {
	first, err := savedOnce(ctx, client, url)
	if err != nil {
		return "", err
	}
	second, err := savedOnce(ctx, client, url)
	return first + ", " + second, err
}

func savedAndChanged(ctx context.Context, client *http.Client, url string) (string, error) {
	key := semel.NewID()
	first, err := named(notes.SaveWith(ctx, client, url, key, "milk"))
	if err != nil {
		return "", err
	}
	second, err := named(notes.SaveWith(ctx, client, url, key, "bread"))
	if errors.Is(err, notes.ErrRefused) {
		return first + ", then refused", nil
	}
	return first + ", " + second, err
}
