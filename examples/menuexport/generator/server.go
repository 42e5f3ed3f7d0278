package generator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Contract is what the service promises about repeated requests.
type Contract string

// The three contracts. The package comment says what they mean.
const (
	Idempotent Contract = "idempotent"
	Queryable  Contract = "queryable"
	Opaque     Contract = "opaque"
)

// Options change how a [Server] behaves. Nil is all defaults.
type Options struct {
	// Contract is the promise about repeats. Defaults to Idempotent.
	Contract Contract

	// KeyRetention is how long after an execution its key is known. After that
	// the key is as if it had never been seen: it executes again, and a look-up
	// does not find it. The pictures stay. Defaults to forever.
	KeyRetention time.Duration

	// MaxRenders is how many pictures are rendered at once; the others wait.
	// Defaults to GOMAXPROCS.
	MaxRenders int

	// Now is the clock of KeyRetention. Defaults to time.Now.
	Now func() time.Time

	// Logger gets a line per execution, with identity and times, never what is
	// on the menu. Defaults to none.
	Logger *slog.Logger
}

// MaxBody is how large a request's body may be, in bytes.
const MaxBody = 1 << 20

// ErrInUse is the error of [New] for a directory that another server has open.
var ErrInUse = errors.New("the directory is in use by another generator")

// Server is the service, an [http.Handler]. Safe for concurrent use.
type Server struct {
	options Options
	store   *store
	faults  *faultSwitch
	mux     *http.ServeMux
	slots   chan struct{} // one per picture that is being rendered

	closing context.Context // done when Close is called
	close   context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running map[string]string // key → digest of the menu; Idempotent only
	active  sync.WaitGroup    // executions, and answers that are held
}

// New opens the storage in dir, which is made where it is missing, and returns
// the service on it. What earlier servers stored there is still there. One server
// at a time can have a directory open: ErrInUse tells of another.
func New(dir string, options *Options) (*Server, error) {
	s := &Server{faults: newFaultSwitch(), running: map[string]string{}}
	if options != nil {
		s.options = *options
	}
	o := &s.options
	switch o.Contract {
	case "":
		o.Contract = Idempotent
	case Idempotent, Queryable, Opaque:
	default:
		return nil, fmt.Errorf("generator: unknown contract %q", o.Contract)
	}
	if o.MaxRenders <= 0 {
		o.MaxRenders = runtime.GOMAXPROCS(0)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s.slots = make(chan struct{}, o.MaxRenders)
	var err error
	if s.store, err = openStore(dir); err != nil {
		return nil, fmt.Errorf("generator: %s: %w", dir, err)
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	s.mux = http.NewServeMux()
	s.mux.Handle("/images", methods{"GET": s.serveList, "POST": s.serveCreate})
	s.mux.Handle("/images/{file}", methods{"GET": s.servePicture})
	s.mux.Handle("/stats", methods{"GET": s.serveStats})
	s.mux.Handle("/faults", methods{"GET": s.serveFaults, "PUT": s.setFaults})
	s.mux.Handle("/faults/held", methods{"GET": s.serveHeld})
	s.mux.Handle("/healthz", methods{"GET": s.serveHealth})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&failure{Status: http.StatusNotFound, Code: "not-found", Message: "there is nothing at this path"}).write(w)
	})
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends the service: executions that have not begun to render are dropped
// and their connections cut, those that have are finished, answers that are held
// are sent. It returns when all that is done and the directory is unlocked. Call
// it before [http.Server.Shutdown], which waits for answers that are held. Later
// POSTs get 503; a second Close does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	s.close()
	s.active.Wait()
	if was {
		return nil
	}
	return s.store.close()
}

func (s *Server) serveStats(w http.ResponseWriter, r *http.Request) {
	// An execution is a stored picture and its record, one each.
	n := s.store.count()
	writeJSON(w, http.StatusOK, map[string]int{"executions": n, "images": n})
}

func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) {
	if s.closing.Err() != nil {
		errClosing.write(w)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "contract": string(s.options.Contract)})
}

// serveList looks a key up. An execution that is still going on is not found:
// "not found" is no proof that nothing will come.
func (s *Server) serveList(w http.ResponseWriter, r *http.Request) {
	if s.options.Contract == Opaque {
		(&failure{Status: http.StatusNotFound, Code: "not-supported", Message: "this service can't look up keys"}).write(w)
		return
	}
	key := r.URL.Query().Get("key")
	if key == "" {
		(&failure{Status: http.StatusBadRequest, Code: "invalid-query", Message: "the query parameter key is missing", Field: "key"}).write(w)
		return
	}
	images := []imageAnswer{}
	for _, rec := range s.store.find(key, s.horizon()) {
		images = append(images, rec.answer())
	}
	writeJSON(w, http.StatusOK, map[string]any{"images": images})
}

// horizon is the time at or before which keys are forgotten.
func (s *Server) horizon() time.Time {
	if s.options.KeyRetention <= 0 {
		return time.Time{}
	}
	return s.options.Now().Add(-s.options.KeyRetention)
}

func (s *Server) servePicture(w http.ResponseWriter, r *http.Request) {
	id, png := strings.CutSuffix(r.PathValue("file"), ".png")
	rec := s.store.get(id)
	if !png || rec == nil {
		(&failure{Status: http.StatusNotFound, Code: "image-not-found", Message: "there is no such image"}).write(w)
		return
	}
	f, err := os.Open(s.store.picturePath(id))
	if err != nil {
		s.options.Logger.Error("read", "image_id", id, "error", err)
		errStorage.write(w)
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+rec.SHA256+`"`)
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, f)
}

func (s *Server) serveFaults(w http.ResponseWriter, r *http.Request) {
	f, list, _ := s.faults.look("")
	writeJSON(w, http.StatusOK, struct {
		Faults
		Held int `json:"held"` // how many requests and answers are being held
	}{f, len(list)})
}

func (s *Server) setFaults(w http.ResponseWriter, r *http.Request) {
	body, fail := readJSON(w, r)
	if fail != nil {
		fail.write(w)
		return
	}
	f := Faults{Count: 1}
	if err := decodeStrict(body, &f); err != nil {
		badInput("invalid-faults", err).write(w)
		return
	}
	if err := f.validate(); err != nil {
		badInput("invalid-faults", err).write(w)
		return
	}
	s.faults.set(f)
	s.serveFaults(w, r)
}

// serveHeld waits until something is held, or with until=none until nothing is,
// for at most wait seconds (0 to 60, 30 where it is missing), and answers with
// what is held then.
func (s *Server) serveHeld(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wait, point, until := 30, query.Get("point"), query.Get("until")
	bad := func(field, message string) {
		(&failure{Status: http.StatusBadRequest, Code: "invalid-query", Message: field + " " + message, Field: field}).write(w)
	}
	if v := query.Get("wait"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 60 {
			bad("wait", "must be from 0 to 60 seconds")
			return
		}
		wait = n
	}
	if point != "" && point != heldRequest && point != heldAnswer {
		bad("point", "must be request or answer")
		return
	}
	if until != "" && until != "held" && until != "none" {
		bad("until", "must be held or none")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(wait)*time.Second)
	defer cancel()
	for {
		_, list, changed := s.faults.look(point)
		if (len(list) == 0) == (until == "none") || ctx.Err() != nil || s.closing.Err() != nil {
			writeJSON(w, http.StatusOK, map[string]any{"held": list})
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-s.closing.Done():
		}
	}
}

// readJSON reads a body that says it is JSON. Asking for the type also keeps web
// pages of other origins out: a browser sends it across origins only if allowed.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, *failure) {
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" {
		return nil, &failure{Status: http.StatusUnsupportedMediaType, Code: "unsupported-media-type",
			Message: "the Content-Type must be application/json", Field: "Content-Type"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &failure{Status: http.StatusRequestEntityTooLarge, Code: "too-large",
			Message: fmt.Sprintf("the body is larger than %d bytes", MaxBody)}
	}
	if err != nil {
		return nil, &failure{Status: http.StatusBadRequest, Code: "incomplete-body", Message: "the body did not arrive whole"}
	}
	return body, nil
}

// digest of a menu with its defaults filled in, by which repeats are compared.
func digest(m Menu) string {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
