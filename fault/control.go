package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ControlHelp is what GET / of [Injector.Control] answers.
const ControlHelp = `GET  /rules              the rules and their counters
PUT  /rules              replace them: one rule per line, or a JSON array of rules
GET  /log                what happened to each request
                         ?wait=N     when N requests are done       ?held=N  when N are held
                         ?started=N  when N have arrived            ?faults=N  when N rules were carried out
                         ?timeout=T  at most this long, default 30s; then the status is 504
                         ?since=SEQ  only entries after this one
POST /release            release what is held; ?n=N only the N oldest
`

// Control returns a handler for programs in other languages: it changes the
// rules, tells what happened, and releases. GET / says how. Errors are
// problem+json; a wrong rule is 400 with line, column, allowed and suggestion.
//
// It asks for no credential, so it belongs on a loopback address. Requests of
// web pages (with an Origin header) are refused.
func (in *Injector) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, ControlHelp) })
	mux.HandleFunc("GET /rules", in.getRules)
	mux.HandleFunc("PUT /rules", in.putRules)
	mux.HandleFunc("GET /log", in.getLog)
	mux.HandleFunc("POST /release", in.postRelease)
	return noPages(mux)
}

// Control returns a handler as that of [Injector.Control], with three more:
// POST /cut, POST /pause and POST /resume.
func (p *TCPProxy) Control() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", p.Injector.Control())
	mux.HandleFunc("POST /cut", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]int{"cut": p.CutAll()})
	})
	mux.HandleFunc("POST /pause", func(w http.ResponseWriter, r *http.Request) {
		p.Pause()
		writeJSON(w, http.StatusOK, map[string]bool{"paused": true})
	})
	mux.HandleFunc("POST /resume", func(w http.ResponseWriter, r *http.Request) {
		p.Resume()
		writeJSON(w, http.StatusOK, map[string]bool{"paused": false})
	})
	return noPages(mux)
}

func noPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			problem(w, http.StatusForbidden, errors.New("the control does not talk to web pages"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (in *Injector) getRules(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, in.Rules())
}

func (in *Injector) putRules(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	text := string(body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var lines []string
		if err := json.Unmarshal(body, &lines); err != nil {
			problem(w, http.StatusBadRequest, fmt.Errorf("not a JSON array of rules: %w", err))
			return
		}
		text = strings.Join(lines, "\n")
	}
	rules, err := ParseRules(text)
	if err == nil {
		err = in.SetRules(rules...)
	}
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	in.getRules(w, r)
}

// logPage is the answer to GET /log.
type logPage struct {
	Progress Progress `json:"progress"`
	Entries  []Entry  `json:"entries"`
}

func (in *Injector) getLog(w http.ResponseWriter, r *http.Request) {
	want, since, timeout, err := logQuery(r.URL.Query())
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	status := http.StatusOK
	reached := func(p Progress) bool {
		return p.Done >= want.Done && p.Held >= want.Held && p.Started >= want.Started && p.Faults >= want.Faults
	}
	if err := in.await(ctx, reached); err != nil {
		status = http.StatusGatewayTimeout
	}
	page := logPage{Progress: in.Progress(), Entries: in.Log()}
	page.Entries = slices.DeleteFunc(page.Entries, func(e Entry) bool { return e.Seq <= since })
	writeJSON(w, status, page)
}

func logQuery(q url.Values) (want Progress, since int64, timeout time.Duration, err error) {
	timeout = 30 * time.Second
	for name, values := range q {
		value := values[0]
		n, numErr := strconv.Atoi(value)
		switch name {
		case "wait":
			want.Done = n
		case "held":
			want.Held = n
		case "started":
			want.Started = n
		case "faults":
			want.Faults = n
		case "since":
			since = int64(n)
		case "timeout":
			timeout, err = time.ParseDuration(value)
			if err != nil {
				return want, since, timeout, fmt.Errorf("timeout is a time, such as 5s, not %q", value)
			}
			continue
		default:
			return want, since, timeout, fmt.Errorf("unknown parameter %q (allowed: wait, held, started, faults, since, timeout)", name)
		}
		if numErr != nil || n < 0 {
			return want, since, timeout, fmt.Errorf("%s is a whole number, not %q", name, value)
		}
	}
	return want, since, timeout, nil
}

func (in *Injector) postRelease(w http.ResponseWriter, r *http.Request) {
	n := -1
	if text := r.URL.Query().Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 0 {
			problem(w, http.StatusBadRequest, fmt.Errorf("n is a whole number, not %q", text))
			return
		}
	}
	writeJSON(w, http.StatusOK, map[string]int{"released": in.release(n)})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// problem is an RFC 9457 answer.
func problem(w http.ResponseWriter, status int, err error) {
	p := map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": err.Error()}
	var parse *ParseError
	if errors.As(err, &parse) {
		p["line"], p["column"], p["rule"] = parse.Line, parse.Column, parse.Text
		if len(parse.Allowed) > 0 {
			p["allowed"] = parse.Allowed
		}
		if parse.Suggestion != "" {
			p["suggestion"] = parse.Suggestion
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(p)
}
