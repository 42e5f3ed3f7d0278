package generator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// service is a real server on a real socket.
type service struct {
	t   testing.TB
	srv *Server
	url string
}

func start(t testing.TB, dir string, o *Options) *service {
	t.Helper()
	srv, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		ts.Close()
	})
	return &service{t, srv, ts.URL}
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
	image  imageAnswer // where it is one
	fail   failure     // where it is one
}

// send makes a request and reads its answer. Headers come in pairs.
func (s *service) send(ctx context.Context, method, path, body string, headers ...string) (reply, error) {
	// No test waits for ever: what should come and does not is a failure.
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	// The transport would resend a POST with a key by itself.
	req.GetBody = nil
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	if r.body, err = io.ReadAll(resp.Body); err != nil {
		return reply{}, err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		into := any(&r.image)
		if r.status >= 400 {
			into = &r.fail
		}
		if err := json.Unmarshal(r.body, into); err != nil {
			return reply{}, err
		}
	}
	return r, nil
}

func (s *service) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := s.send(s.t.Context(), method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (s *service) post(key, body string) reply {
	s.t.Helper()
	return s.do("POST", "/images", body, "Idempotency-Key", key)
}

// postLater posts in the background; the result is sent when it comes.
func (s *service) postLater(ctx context.Context, key, body string) <-chan error {
	done := make(chan error, 1)
	go func() {
		r, err := s.send(ctx, "POST", "/images", body, "Idempotency-Key", key)
		if err == nil && r.status != http.StatusCreated {
			err = errors.New(string(r.body))
		}
		done <- err
	}()
	return done
}

func (s *service) faults(body string) {
	s.t.Helper()
	if r := s.do("PUT", "/faults", body); r.status != http.StatusOK {
		s.t.Fatalf("PUT /faults %s: %d %s", body, r.status, r.body)
	}
}

// held waits for what is held.
func (s *service) held(query string) []held {
	s.t.Helper()
	var out struct{ Held []held }
	r := s.do("GET", "/faults/held?wait=60&"+query, "")
	if err := json.Unmarshal(r.body, &out); err != nil || r.status != http.StatusOK {
		s.t.Fatalf("GET /faults/held: %d %s", r.status, r.body)
	}
	return out.Held
}

func (s *service) wantStats(n int) {
	s.t.Helper()
	var got map[string]int
	r := s.do("GET", "/stats", "")
	if err := json.Unmarshal(r.body, &got); err != nil {
		s.t.Fatal(err)
	}
	if len(got) != 2 || got["executions"] != n || got["images"] != n {
		s.t.Errorf("stats are %s, want %d executions and images", r.body, n)
	}
}

func (s *service) lookUp(key string) []imageAnswer {
	s.t.Helper()
	var out struct{ Images []imageAnswer }
	r := s.do("GET", "/images?key="+url.QueryEscape(key), "")
	if err := json.Unmarshal(r.body, &out); err != nil || r.status != http.StatusOK {
		s.t.Fatalf("GET /images: %d %s", r.status, r.body)
	}
	return out.Images
}

func (r reply) want(t testing.TB, status int, code string) {
	t.Helper()
	if r.status != status || r.fail.Code != code {
		t.Errorf("got %d %s, want %d %s", r.status, r.body, status, code)
	}
	if status >= 400 && r.fail.Message == "" {
		t.Errorf("%d %s has no message", status, code)
	}
}

func menuTitled(title string) string { return strings.Replace(weekJSON, "本周菜单", title, 1) }

func TestCreateAndFetch(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	r := s.post(`"k-1"`, weekJSON)
	r.want(t, http.StatusCreated, "")
	if r.image.Key != "k-1" || r.header.Get("Location") != r.image.ImageURL || r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("answer %s, header %v", r.body, r.header)
	}
	pic := s.do("GET", r.image.ImageURL, "")
	if pic.status != http.StatusOK || pic.header.Get("Content-Type") != "image/png" || !strings.Contains(pic.header.Get("Cache-Control"), "immutable") {
		t.Fatalf("picture: %d %v", pic.status, pic.header)
	}
	if sum := sha256.Sum256(pic.body); hex.EncodeToString(sum[:]) != r.image.SHA256 {
		t.Error("the digest is not the picture's")
	}
	config, err := png.DecodeConfig(bytes.NewReader(pic.body))
	if err != nil || config.Width != r.image.Width || config.Height != r.image.Height || config.Width != DefaultWidth {
		t.Errorf("picture is %+v, %v; answer %s", config, err, r.body)
	}
	etag := pic.header.Get("ETag")
	if again := s.do("GET", r.image.ImageURL, "", "If-None-Match", etag); etag == "" || again.status != http.StatusNotModified || len(again.body) > 0 {
		t.Errorf("with ETag %s: %d", etag, again.status)
	}
	if head := s.do("HEAD", r.image.ImageURL, ""); head.status != http.StatusOK || len(head.body) > 0 {
		t.Errorf("HEAD: %d", head.status)
	}
	s.wantStats(1)
}

func TestIdempotent(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	first := s.post("k", weekJSON)
	check := func(s *service) {
		t.Helper()
		// The quoted form names the same key; another form of the same menu is the same.
		for key, body := range map[string]string{"k": weekJSON, `"k"`: strings.TrimSuffix(weekJSON, "}") + `, "width": 800}`} {
			r := s.post(key, body)
			r.want(t, http.StatusCreated, "")
			if r.image != first.image || r.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("replay is %s %v, first was %s", r.body, r.header, first.body)
			}
		}
		s.post("k", menuTitled("另一个")).want(t, http.StatusUnprocessableEntity, "mismatch")
		s.wantStats(1)
	}
	check(s)
	if err := s.srv.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir, nil)
	check(s)
	s.post("k2", weekJSON).want(t, http.StatusCreated, "")
	s.wantStats(2)
}

func TestIdempotentInProgress(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.faults(`{"hold_request":true}`)
	done := s.postLater(t.Context(), "k", weekJSON)
	if list := s.held("point=request"); len(list) != 1 || list[0].Key != "k" || list[0].Point != "request" {
		t.Fatalf("held %+v", list)
	}
	r := s.post("k", weekJSON)
	r.want(t, http.StatusConflict, "in-progress")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	// The mismatch is told before "in progress".
	s.post("k", menuTitled("另一个")).want(t, http.StatusUnprocessableEntity, "mismatch")
	s.wantStats(0)
	// From the hold into a long delay, still in progress; then out of that too.
	s.faults(`{"delay_ms":600000}`)
	s.post("k", weekJSON).want(t, http.StatusConflict, "in-progress")
	s.faults(`{}`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.post("k", weekJSON).want(t, http.StatusCreated, "")
	s.wantStats(1)
}

func TestIdempotentConcurrent(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	const n = 60
	replies := make([]reply, n)
	var wg sync.WaitGroup
	for i := range replies {
		wg.Go(func() {
			for {
				r, err := s.send(t.Context(), "POST", "/images", weekJSON, "Idempotency-Key", "k")
				if err != nil {
					t.Error(err)
					return
				}
				if r.status != http.StatusConflict {
					replies[i] = r
					return
				}
			}
		})
	}
	wg.Wait()
	fresh := 0
	for _, r := range replies {
		r.want(t, http.StatusCreated, "")
		if r.image != replies[0].image {
			t.Errorf("%s and %s", r.body, replies[0].body)
		}
		if r.header.Get("Idempotency-Replayed") == "" {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d answers are not replays", fresh)
	}
	s.wantStats(1)
}

func TestQueryable(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, &Options{Contract: Queryable})
	if got := s.lookUp("k"); len(got) != 0 {
		t.Errorf("an unknown key has %v", got)
	}
	a, b := s.post("k", weekJSON), s.post("k", weekJSON)
	s.post("other key", weekJSON).want(t, http.StatusBadRequest, "invalid-key")
	s.post(`"other key"`, weekJSON).want(t, http.StatusCreated, "")
	if a.image.ImageID == b.image.ImageID || b.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%s and %s: a second POST must execute", a.body, b.body)
	}
	check := func(s *service) {
		t.Helper()
		if got := s.lookUp("k"); len(got) != 2 || got[0] != a.image || got[1] != b.image {
			t.Errorf("look-up gives %v", got)
		}
		if got := s.lookUp("other key"); len(got) != 1 {
			t.Errorf("look-up of the other key gives %v", got)
		}
		s.wantStats(3)
	}
	check(s)
	s.do("GET", "/images", "").want(t, http.StatusBadRequest, "invalid-query")
	s.srv.Close()
	check(start(t, dir, &Options{Contract: Queryable}))
}

func TestQueryableFindsOnlyWhatIsStored(t *testing.T) {
	s := start(t, t.TempDir(), &Options{Contract: Queryable})
	s.faults(`{"hold_request":true}`)
	done := s.postLater(t.Context(), "k", weekJSON)
	s.held("point=request")
	if got := s.lookUp("k"); len(got) != 0 {
		t.Errorf("found before it was stored: %v", got)
	}
	s.faults(`{"hold_answer":true}`)
	if list := s.held("point=answer"); len(list) != 1 || len(s.lookUp("k")) != 1 || s.lookUp("k")[0].ImageID != list[0].ImageID {
		t.Errorf("held %+v, found %v", list, s.lookUp("k"))
	}
	s.faults(`{}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOpaque(t *testing.T) {
	s := start(t, t.TempDir(), &Options{Contract: Opaque})
	a, b := s.post("k", weekJSON), s.post("k", menuTitled("另一个"))
	a.want(t, http.StatusCreated, "")
	b.want(t, http.StatusCreated, "")
	s.do("POST", "/images", weekJSON).want(t, http.StatusCreated, "")
	s.post(`"broken`, weekJSON).want(t, http.StatusCreated, "")
	if a.image.Key != "" || bytes.Contains(a.body, []byte(`"key"`)) {
		t.Errorf("the key is told: %s", a.body)
	}
	s.do("GET", "/images?key=k", "").want(t, http.StatusNotFound, "not-supported")
	s.wantStats(4)
}

func TestKeyRetention(t *testing.T) {
	for _, contract := range []Contract{Idempotent, Queryable} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		dir := t.TempDir()
		o := &Options{Contract: contract, KeyRetention: time.Hour, Now: func() time.Time { return now }}
		s := start(t, dir, o)
		first := s.post("k", weekJSON)
		now = now.Add(time.Hour - time.Second)
		if got := s.lookUp("k"); len(got) != 1 {
			t.Errorf("%s: within the retention: %v", contract, got)
		}
		now = now.Add(time.Second)
		if got := s.lookUp("k"); len(got) != 0 {
			t.Errorf("%s: after the retention: %v", contract, got)
		}
		s.srv.Close()
		s = start(t, dir, o)
		// Known no more: it executes again, even for another menu.
		again := s.post("k", menuTitled("另一个"))
		again.want(t, http.StatusCreated, "")
		if again.image.ImageID == first.image.ImageID {
			t.Errorf("%s: answered from a record that is too old", contract)
		}
		s.wantStats(2)
		if pic := s.do("GET", first.image.ImageURL, ""); pic.status != http.StatusOK {
			t.Errorf("%s: the picture went with its key: %d", contract, pic.status)
		}
	}
}

func TestBadRequests(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	r := s.post("k", strings.TrimSuffix(weekJSON, "}")+`,"width":1}`)
	r.want(t, http.StatusBadRequest, "invalid-menu")
	if r.fail.Field != "/width" || !strings.Contains(r.fail.Message, "320") {
		t.Errorf("got %s", r.body)
	}
	s.do("POST", "/images", weekJSON).want(t, http.StatusBadRequest, "invalid-key")
	s.do("POST", "/images", weekJSON, "Idempotency-Key", "a", "Idempotency-Key", "b").want(t, http.StatusBadRequest, "invalid-key")
	s.do("POST", "/images", "", "Idempotency-Key", "a").want(t, http.StatusUnsupportedMediaType, "unsupported-media-type")
	s.post("k", weekJSON+strings.Repeat(" ", MaxBody)).want(t, http.StatusRequestEntityTooLarge, "too-large")
	s.post("k", weekJSON+strings.Repeat(" ", MaxBody-len(weekJSON))).want(t, http.StatusCreated, "")
	s.do("GET", "/images/nothing.png", "").want(t, http.StatusNotFound, "image-not-found")
	s.do("GET", "/images/..%2flock", "").want(t, http.StatusNotFound, "image-not-found")
	s.do("GET", "/nowhere", "").want(t, http.StatusNotFound, "not-found")
	r = s.do("DELETE", "/images", "")
	r.want(t, http.StatusMethodNotAllowed, "method-not-allowed")
	if r.header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow is %q", r.header.Get("Allow"))
	}
	if r := s.do("GET", "/healthz", ""); r.status != http.StatusOK {
		t.Errorf("healthz: %d", r.status)
	}
	s.wantStats(1)
}

func TestOptions(t *testing.T) {
	if _, err := New(t.TempDir(), &Options{Contract: "sometimes"}); err == nil {
		t.Error("a contract that does not exist was taken")
	}
}

// The log has identities and times, and nothing of what is on the menu.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	s := start(t, t.TempDir(), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r := s.post("key-1", weekJSON)
	s.post("key-1", menuTitled("另一个"))
	s.post("key-2", `{"title":"本周菜单"}`)
	s.srv.Close()
	if !strings.Contains(log.String(), r.image.ImageID) || !strings.Contains(log.String(), "key-1") {
		t.Errorf("the execution is not logged: %s", &log)
	}
	for _, secret := range []string{"本周菜单", "周一", "番茄", "米饭", "另一个"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log tells %s", secret)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	s := start(b, b.TempDir(), &Options{Contract: Opaque})
	body, err := json.Marshal(weekMenu())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.do("POST", "/images", string(body)).want(b, http.StatusCreated, "")
	}
}

func BenchmarkReplay(b *testing.B) {
	s := start(b, b.TempDir(), nil)
	for b.Loop() {
		s.post("k", weekJSON).want(b, http.StatusCreated, "")
	}
}
