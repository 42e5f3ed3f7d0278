package page

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/menuexport"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/httpapi/problem"
)

// Causes tell how the switches stand and what they have done.
type Causes struct {
	// LoseAnswer: the answer to the next PUT is lost after its commit. It turns
	// itself off when it has.
	LoseAnswer bool `json:"lose_answer"`
	// KillWorker: the worker's process is killed when the generator has finished the
	// next picture, before its answer is out. It turns itself off when it has.
	KillWorker bool `json:"kill_worker"`
	// SlowGenerator: pictures take three seconds longer.
	SlowGenerator bool `json:"slow_generator"`
	// Losses are the answers to the asker's account that were lost, Kills the workers
	// that were killed; both oldest first, and only the newest of them.
	Losses []Loss `json:"losses"`
	Kills  []Kill `json:"kills"`
}

// A Loss is one transmission whose answer was lost.
type Loss struct {
	At          time.Time `json:"at"`
	OperationID string    `json:"operation_id"`
	AttemptID   string    `json:"attempt_id,omitempty"`
	// Times is above 1 where the browser sent the same transmission again by itself.
	Times int `json:"times"`

	account string
}

// A Kill is one worker that was killed.
type Kill struct {
	At time.Time `json:"at"`
	// FinishedAt is when the generator had stored the picture that this worker was
	// waiting for.
	FinishedAt time.Time `json:"finished_at"`
}

// A Change moves switches; what is nil stays as it is.
type Change struct {
	LoseAnswer    *bool `json:"lose_answer"`
	KillWorker    *bool `json:"kill_worker"`
	SlowGenerator *bool `json:"slow_generator"`
}

// Switches are the causes that are outside this process. They know nothing of
// LoseAnswer and Losses.
type Switches interface {
	Get(ctx context.Context) (Causes, error)
	Set(ctx context.Context, change Change) error
}

// keptLosses is how many losses are remembered.
const keptLosses = 100

func (s *Site) causes(w http.ResponseWriter, r *http.Request) {
	who, err := s.server.Identify(r)
	if err == nil && s.opts.Causes == nil {
		err = &semel.Error{Op: "causes", Code: semel.CodeNotFound, Msg: "this page has no switches"}
	}
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	now, err := s.opts.Causes.Get(r.Context())
	if err != nil {
		problem.Write(w, problem.Of(&semel.Error{Op: "causes", Code: semel.CodeUnavailable, Err: err}))
		return
	}
	if now.Kills == nil {
		now.Kills = []Kill{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now.LoseAnswer, now.Losses = s.armed, []Loss{}
	for _, l := range s.losses {
		if l.account == who.Account {
			now.Losses = append(now.Losses, *l)
		}
	}
	writeJSON(w, now)
}

func (s *Site) setCauses(w http.ResponseWriter, r *http.Request) {
	who, err := s.server.Identify(r)
	if err == nil && s.cross.Check(r) != nil {
		err = &semel.Error{Op: "causes", Code: semel.CodeForbidden, Msg: "the switches are moved from this page only"}
	}
	if err == nil && (s.opts.Causes == nil || !who.Operator) {
		err = &semel.Error{Op: "causes", Code: semel.CodeForbidden, Msg: "the switches are the demo account's"}
	}
	var change Change
	if err == nil {
		strict := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096))
		strict.DisallowUnknownFields()
		if bad := strict.Decode(&change); bad != nil {
			err = &semel.Error{Op: "causes", Code: semel.CodeInvalid, Msg: "the switches are JSON: " + bad.Error()}
		}
	}
	if err == nil && (change.KillWorker != nil || change.SlowGenerator != nil) {
		if failed := s.opts.Causes.Set(r.Context(), change); failed != nil {
			err = &semel.Error{Op: "causes", Code: semel.CodeUnavailable, Err: failed}
		}
	}
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	if change.LoseAnswer != nil {
		s.mu.Lock()
		s.armed = *change.LoseAnswer
		s.mu.Unlock()
	}
	s.causes(w, r)
}

// aim decides whether this transmission's answer is to be lost, and if so sets
// the fault to it and notes the loss. A browser sends a request again by itself
// when a connection that it has reused breaks, so it is the transmission that
// loses its answer, however often it goes out.
func (s *Site) aim(r *http.Request) *Loss {
	id, ok := strings.CutPrefix(r.URL.Path, "/v1/operations/"+menuexport.KindName+"/")
	if !ok || r.Method != http.MethodPut || id == "" || strings.Contains(id, "/") {
		return nil
	}
	attempt := r.Header.Get("Attempt-Id")
	who, err := s.server.Identify(r)
	if err != nil || !semel.ValidID(id) || attempt != "" && !semel.ValidID(attempt) {
		return nil // nothing will be committed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed {
		if n := len(s.losses); n > 0 && attempt != "" && s.losses[n-1].AttemptID == attempt && s.losses[n-1].OperationID == id {
			s.losses[n-1].Times++
		}
		return nil
	}
	rule := fault.Rule{Fault: fault.LoseAnswer, Method: http.MethodPut, Path: r.URL.Path}
	if attempt == "" {
		rule.Count = 1
	} else {
		rule.Header = []fault.HeaderMatch{{Name: "Attempt-Id", Value: attempt}}
	}
	if s.handler.SetRules(rule) != nil {
		return nil // an ID or header that no rule can name
	}
	s.armed = false
	loss := &Loss{At: time.Now().UTC(), OperationID: id, AttemptID: attempt, Times: 1, account: who.Account}
	s.losses = append(s.losses, loss)
	if extra := len(s.losses) - keptLosses; extra > 0 {
		s.losses = slices.Delete(s.losses, 0, extra)
	}
	return loss
}

// lost notes when the answer was gone.
func (s *Site) lost(l *Loss) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.At = time.Now().UTC()
}
