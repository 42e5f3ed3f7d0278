package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
)

// A caller speaks HTTP to a server of the lab. One call is one transmission.
type caller struct {
	base, token string
	http        *http.Client
}

func newCaller(base, token string, transport http.RoundTripper) *caller {
	if transport == nil {
		transport = &http.Transport{MaxIdleConnsPerHost: 64}
	}
	return &caller{base, token, &http.Client{Transport: transport}}
}

// An answer is what a caller was told.
type answer struct {
	Status    int
	Replayed  bool
	ETag      string
	Operation *semel.Operation
	// Code, Fields and Detail are those of an error.
	Code   semel.Code
	Fields []string
	Detail string
}

// String is what a person would see: a state, or an error.
func (a answer) String() string {
	switch {
	case a.Code != "" && len(a.Fields) > 0:
		return fmt.Sprintf("%d %s %s", a.Status, a.Code, strings.Join(a.Fields, " "))
	case a.Code != "":
		return fmt.Sprintf("%d %s", a.Status, a.Code)
	case a.Operation != nil:
		return string(a.Operation.State)
	}
	return strconv.Itoa(a.Status)
}

func operationPath(kind, id string) string {
	return "/v1/operations/" + url.PathEscape(kind) + "/" + url.PathEscape(id)
}

// do sends once. An error means that there was no answer.
func (c *caller) do(ctx context.Context, method, path, body string, header ...string) (answer, error) {
	text, resp, err := c.raw(ctx, method, path, body, header...)
	if err != nil {
		return answer{}, err
	}
	a := answer{Status: resp.StatusCode, Replayed: resp.Header.Get("Idempotency-Replayed") == "true", ETag: resp.Header.Get("ETag")}
	if resp.StatusCode >= 300 {
		var p problem.Problem
		if err := json.Unmarshal(text, &p); err != nil {
			return a, nil // somebody on the way, such as the lab's own proxy
		}
		a.Code, a.Fields, a.Detail, a.Operation = p.Code, p.DifferingFields, p.Detail, p.Operation
		return a, nil
	}
	var op semel.Operation
	if err := json.Unmarshal(text, &op); err != nil {
		return a, fmt.Errorf("the answer can't be read: %w", err)
	}
	a.Operation = &op
	return a, nil
}

func (c *caller) raw(ctx context.Context, method, path, body string, header ...string) ([]byte, *http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.GetBody = nil // one call is one transmission
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return text, resp, err
}

func preferWait(d time.Duration) []string {
	return []string{"Prefer", "wait=" + strconv.Itoa(int(d/time.Second))}
}

// put asks once, and waits for the outcome for so long.
func (c *caller) put(ctx context.Context, kind, id, params string, wait time.Duration) (answer, error) {
	return c.do(ctx, http.MethodPut, operationPath(kind, id), params, preferWait(wait)...)
}

// ask sends the same request until there is an answer, and then until it says how
// the operation ended. It is all that a careful client has to do.
func (c *caller) ask(ctx context.Context, kind, id, params string) (answer, error) {
	for {
		a, err := c.put(ctx, kind, id, params, 30*time.Second)
		switch {
		case ctx.Err() != nil:
			return a, errors.Join(err, ctx.Err())
		case err == nil && a.Status < 500 && (a.Operation == nil || a.Code != "" || over(a.Operation)):
			return a, nil
		}
	}
}

// await looks an operation up until it has ended, or needs a person.
func (c *caller) await(ctx context.Context, kind, id string) (*semel.Operation, error) {
	return c.awaitThat(ctx, kind, id, over)
}

// awaitThat looks an operation up until it is as wanted.
func (c *caller) awaitThat(ctx context.Context, kind, id string, wanted func(*semel.Operation) bool) (*semel.Operation, error) {
	for {
		a, err := c.do(ctx, http.MethodGet, operationPath(kind, id), "", preferWait(30*time.Second)...)
		switch {
		case err != nil:
			return nil, err
		case a.Operation == nil || a.Code != "":
			return nil, fmt.Errorf("%s/%s: %s: %s", kind, id, a, a.Detail)
		case wanted(a.Operation):
			return a.Operation, nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil { // the states that it waits for come by another process
			return nil, fmt.Errorf("%s/%s is still %s: %w", kind, id, a, err)
		}
	}
}

func over(op *semel.Operation) bool {
	return op.State.Settled() || op.State == semel.NeedsReconciliation
}

// history returns what happened to an operation.
func (c *caller) history(ctx context.Context, kind, id string) (semel.History, error) {
	var h semel.History
	return h, c.json(ctx, operationPath(kind, id)+"/history", &h)
}

// list returns all operations of the caller's account.
func (c *caller) list(ctx context.Context) ([]semel.Operation, error) {
	var all []semel.Operation
	for token := ""; ; {
		var page struct {
			Operations    []semel.Operation `json:"operations"`
			NextPageToken string            `json:"next_page_token"`
		}
		path := "/v1/operations?page_size=1000"
		if token != "" {
			path += "&page_token=" + url.QueryEscape(token)
		}
		if err := c.json(ctx, path, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Operations...)
		if token = page.NextPageToken; token == "" {
			return all, nil
		}
	}
}

// json reads an answer that is no operation.
func (c *caller) json(ctx context.Context, path string, into any) error {
	text, resp, err := c.raw(ctx, http.MethodGet, path, "")
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", path, resp.Status, text)
	}
	return json.Unmarshal(text, into)
}

// pause waits, where another process gives no signal that could be waited for.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
