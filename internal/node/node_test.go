package node_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/config"
	"github.com/semel-dev/semel/internal/node"
)

// What is wrong in the external call of a kind is said once, with its line.
func TestWrongCalls(t *testing.T) {
	for wrong, want := range map[string]string{
		"url: nope":                             "semel.yaml:3: kinds.order.http: ",
		"url: ftp://x/y":                        "semel.yaml:3: kinds.order.http: ",
		"method: POST":                          "semel.yaml:3: kinds.order.http: ",
		"secret_header: {Authorization: x}":     "semel.yaml:3: kinds.order.http.secret_header: there is no such member",
		"url: http://h/o, method: [GET]":        "semel.yaml:3: kinds.order.http.method: a list stands here: write text",
		"url: http://h/o, result: {charge: id}": "result.charge",
	} {
		text := "kinds:\n  order:\n    http: {" + wrong + "}\n"
		cfg, err := config.Parse(filepath.Join(t.TempDir(), "semel.yaml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		n, err := node.Open(t.Context(), cfg, nil)
		if err == nil {
			n.Close()
			t.Errorf("%s: it is opened", wrong)
		} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "the effect is missing") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// A database that can't be is refused without its password.
func TestUnknownDatabases(t *testing.T) {
	_, err := node.OpenStore(context.Background(), "postgre://me:secret@127.0.0.1/semel", semel.ShardByAccount)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "postgres://") {
		t.Errorf("%v", err)
	}
}

// A database that can't be used is told with its file, without codes, and with what
// to do about it.
func TestUnusableDatabases(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newer := filepath.Join(dir, "newer.db")
	store, err := node.OpenStore(t.Context(), newer, semel.ShardByAccount)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := node.OpenStore(t.Context(), newer, semel.ShardByKey); err == nil || !strings.HasSuffix(err.Error(), "leave the sharding out, or begin a new file") {
		t.Errorf("another sharding: %v", err)
	}
	db, err := sql.Open("sqlite", newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE semel_meta SET value = '99' WHERE name = 'schema_version'"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	databases := map[string]string{
		newer:              newer + ": the file has schema version 99; this release knows 1; use the release that wrote it, or a later one",
		dir + "/none/x.db": dir + "/none/x.db: the database file can't be opened: open ",
		file("text", 0o600, "no, text, and not a little of it, for SQLite looks at the first hundred bytes of a file, no less"): dir + "/text: the database file is damaged, or is not an SQLite database",
		"postgres://me@127.0.0.1:1/x":  "the database can't be reached: ",
		"sqlite:" + dir + "/none/x.db": dir + "/none/x.db: ",
	}
	if os.Getuid() != 0 { // who may do everything
		databases[file("unreadable", 0, "")] = dir + "/unreadable: this user may not both read and write it: permission denied; check its owner and its mode"
		databases[file("unwritable", 0o400, "")] = dir + "/unwritable: this user may not both read and write it"
	}
	for database, want := range databases {
		store, err := node.OpenStore(t.Context(), database, "")
		if err == nil {
			store.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "semel:") {
			t.Errorf("%s:\n got %v\nwant %s", database, err, want)
		}
	}
}
