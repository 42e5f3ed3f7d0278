package idempotency_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/internal/pgtest"
)

// nodeEnv makes the test binary a node that can be killed: it holds a processConfig.
const nodeEnv = "SEMEL_IDEMPOTENCY_NODE"

func TestMain(m *testing.M) {
	if text := os.Getenv(nodeEnv); text != "" {
		runNode(text)
		return
	}
	os.Exit(pgtest.Main(m))
}

type processConfig struct {
	Kind, DSN, Outside string
	Transactional      bool
	Lease              time.Duration
}

// runNode serves until it is killed. The header Die says at which point it kills
// itself.
func runNode(text string) {
	var c processConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	ctx := context.Background()
	d, err := openDatabase(ctx, c.Kind, c.DSN)
	if err != nil {
		panic(err)
	}
	die := func(at string) {
		p, _ := os.FindProcess(os.Getpid())
		p.Kill()
		select {} // until the signal is there
	}
	store := &dyingStore{Store: d.store, die: die}
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: kindsOf(&world{})})
	if err != nil {
		panic(err)
	}
	opts := &idempotency.Options{Account: account, Lease: c.Lease}
	if c.Transactional {
		opts.Begin = func(ctx context.Context) (*idempotency.Transaction, error) {
			t, err := d.begin(ctx)
			if err != nil {
				return nil, err
			}
			commit := t.Commit
			t.Commit = func() error {
				if store.at == "before-commit" {
					die("")
				}
				err := commit()
				if store.at == "after-commit" {
					die("")
				}
				return err
			}
			return t, nil
		}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", idempotency.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		store.at = r.Header.Get("Die")
		key, _ := idempotency.KeyOf(r.Context())
		if store.at == "before-effect" {
			die("")
		}
		if c.Transactional {
			if err := insertOrder(r.Context(), key.ID); err != nil {
				http.Error(w, err.Error(), 500)
				return
			}
		} else if resp, err := http.Post(c.Outside+"/"+key.ID, "text/plain", nil); err == nil {
			resp.Body.Close()
		}
		if store.at == "after-effect" {
			die("")
		}
		w.Header().Set("Location", "/orders/"+key.ID)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":%q}`, key.ID)
		if store.at == "after-flush" {
			w.(http.Flusher).Flush()
			die("")
		}
	}), ledger, opts))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	panic(http.Serve(listener, mux))
}

// A dyingStore kills the process around the write of the outcome.
type dyingStore struct {
	semel.Store
	at  string
	die func(string)
}

func (s *dyingStore) Apply(ctx context.Context, b []semel.Change) ([]semel.Applying, error) {
	if s.at == "before-record" {
		s.die("")
	}
	out, err := s.Store.Apply(ctx, b)
	if s.at == "after-record" {
		s.die("")
	}
	return out, err
}

// process starts a node as a process of its own and returns its address.
func (w *world) process(c processConfig) (url string, ended <-chan struct{}) {
	w.Helper()
	c.Kind, c.DSN = w.kind, w.dsn
	text, _ := json.Marshal(c)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(text))
	cmd.Stderr = w
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		w.Fatalf("the node did not start: %v\n%s", err, w.logs.String())
	}
	go func() { cmd.Wait(); close(done) }()
	w.Cleanup(func() { cmd.Process.Kill(); <-done })
	return strings.TrimSpace(string(line[:n])), done
}
