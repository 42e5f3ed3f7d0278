package pgtest

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestDatabasesAreApart(t *testing.T) {
	for range 2 {
		conn, err := pgx.Connect(t.Context(), Database(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE TABLE there (x int)"); err != nil {
			t.Error(err)
		}
		conn.Close(t.Context())
	}
}

func TestExampleIsDropped(t *testing.T) {
	Database(t) // or skip
	url, drop := Example()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close(t.Context())
	drop()
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		conn.Close(t.Context())
		t.Error("it is still there")
	}
}
