// Package pgtest runs a real PostgreSQL server for tests and benchmarks.
//
// One server is started for each test binary, in a temporary folder, when the
// first test asks for it:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestStore(t *testing.T) {
//		url := pgtest.Database(t) // an empty database of its own
//		…
//	}
//
// The server's programs are found in SEMEL_POSTGRES_BIN, in PATH, or where Debian
// puts them. Where there are none the test is skipped, and fails if
// SEMEL_REQUIRE is set, as `make test` does.
package pgtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Main runs the tests of a package and then stops the server, if one was
// started. Its result is for os.Exit.
func Main(m *testing.M) int {
	code := m.Run()
	if shared.server != nil {
		shared.server.Stop()
	}
	return code
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
	count  atomic.Int64
}

// Database returns the URL of a new, empty database on the shared server. It is
// dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	if err := startShared(); err != nil {
		Missing(t, err)
	}
	return shared.server.Database(t)
}

func startShared() error {
	shared.once.Do(func() { shared.server, shared.err = Start("fsync=off", "full_page_writes=off") })
	return shared.err
}

// Example returns the URL of a new, empty database on the shared server, for an
// example, and a function that drops it.
func Example() (url string, drop func()) {
	url, drop, err := example()
	if err != nil {
		panic(err) // an example has no other way to fail
	}
	return url, drop
}

func example() (url string, drop func(), err error) {
	if err := startShared(); err != nil {
		return "", nil, err
	}
	name, err := shared.server.create()
	return shared.server.URL(name), func() { shared.server.drop(name) }, err
}

// SkipExamples belongs into a TestMain, before m.Run, where all examples need the
// server: where [Missing] would skip a test, they are skipped, which they can't do
// themselves.
func SkipExamples() {
	if _, err := findPrograms(); err == nil || required() {
		return
	}
	flag.Parse()
	skip := "^Example"
	if asked := flag.Lookup("test.skip").Value.String(); asked != "" {
		skip += "|" + asked
	}
	flag.Set("test.skip", skip)
}

func required() bool { return os.Getenv("SEMEL_REQUIRE") != "" || os.Getenv("CI") == "true" }

// Missing skips the test, or fails it where nothing may be skipped.
func Missing(t testing.TB, err error) {
	t.Helper()
	if required() {
		t.Fatal(err)
	}
	t.Skip(err)
}

// A Server is a PostgreSQL server of ours.
type Server struct {
	// Addr is its TCP address, host and port.
	Addr string
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
}

// Start makes a cluster in a temporary folder and starts a server on it, with
// settings such as "fsync=off". It listens on a free port of 127.0.0.1.
func Start(settings ...string) (*Server, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := s.start(bin, settings); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return s, nil
}

func (s *Server) start(bin string, settings []string) error {
	as, err := s.otherUser()
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	init := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "semel", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	init.SysProcAttr, init.Dir = as, s.dir
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for range 3 { // somebody else may take the port in the moment in which it is free
		if err = s.serve(bin, data, as, settings); !errors.Is(err, errEnded) {
			return err
		}
	}
	return err
}

var errEnded = errors.New("the server ended at once")

// serve starts the server on a free port, and waits until it lets us in.
func (s *Server) serve(bin, data string, as *syscall.SysProcAttr, settings []string) error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Addr = free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(s.Addr)
	args := []string{"-D", data, "-c", "listen_addresses=127.0.0.1", "-c", "port=" + port, "-c", "unix_socket_directories=" + s.dir,
		"-c", "max_connections=300", "-c", "shared_buffers=256MB", "-c", "max_wal_size=2GB", "-c", "log_min_messages=fatal"}
	for _, set := range settings {
		args = append(args, "-c", set)
	}
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), args...)
	s.cmd.SysProcAttr, s.cmd.Dir = as, s.dir
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	cmd, done := s.cmd, make(chan struct{})
	s.done = done
	go func() { cmd.Wait(); close(done) }()
	return s.waitReady()
}

// waitReady tries to connect until the server lets us in: it gives no signal.
func (s *Server) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.done:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%w:\n%s", errEnded, text)
		case <-ctx.Done():
			s.Stop()
			return fmt.Errorf("the server does not let us in: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// otherUser gives the folder to an ordinary user when we are root, as whom
// PostgreSQL refuses to run.
func (s *Server) otherUser() (*syscall.SysProcAttr, error) {
	// The server ends with us, however we end.
	as := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	if os.Getuid() != 0 {
		return as, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return as, os.Chown(s.dir, uid, gid)
	}
	return nil, fmt.Errorf("root can't run PostgreSQL, and there is no user postgres or nobody")
}

// URL returns the address of a database on this server.
func (s *Server) URL(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("semel"), Host: s.Addr, Path: "/" + database, RawQuery: "sslmode=disable"}).String()
}

// Database makes an empty database and returns its URL; it is dropped when the
// test ends.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name, err := s.create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.drop(name); err != nil {
			t.Error(err)
		}
	})
	return s.URL(name)
}

func (s *Server) create() (name string, err error) {
	name = fmt.Sprintf("test_%d", shared.count.Add(1))
	return name, s.exec("CREATE DATABASE " + name)
}

func (s *Server) drop(name string) error { return s.exec("DROP DATABASE " + name + " WITH (FORCE)") }

func (s *Server) exec(sql string) error {
	ctx := context.Background() // also used when a test's own has ended
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// Stop ends the server at once and removes its folder.
func (s *Server) Stop() {
	s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.done
	os.RemoveAll(s.dir)
}

// Program returns the path of one of the server's programs, such as "pgbench".
func Program(name string) (string, error) {
	bin, err := findPrograms()
	if err != nil {
		return "", err
	}
	file := filepath.Join(bin, name)
	_, err = os.Stat(file)
	return file, err
}

func findPrograms() (string, error) {
	var tried []string
	if dir := os.Getenv("SEMEL_POSTGRES_BIN"); dir != "" {
		tried = append(tried, dir)
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(debian) // the newest first
	tried = append(tried, debian...)
	if file, err := exec.LookPath("initdb"); err == nil {
		tried = append(tried, filepath.Dir(file))
	}
	for _, dir := range tried {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("pgtest: PostgreSQL's programs are not here (set SEMEL_POSTGRES_BIN, or run scripts/need)")
}
