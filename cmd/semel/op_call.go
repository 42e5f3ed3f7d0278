package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
)

// A credential is a token, and where it came from.
type credential struct{ token, from string }

// readToken reads the token from the file, or else from the environment.
func readToken(file string) (credential, error) {
	if file == "" {
		token := strings.TrimSpace(os.Getenv("SEMEL_TOKEN"))
		if token == "" {
			return credential{}, errors.New("there is no token: set SEMEL_TOKEN, or say --token-file FILE; nothing was asked")
		}
		return credential{token, "SEMEL_TOKEN"}.checked()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return credential{}, fmt.Errorf("--token-file: %w; nothing was asked", err)
	}
	return credential{strings.TrimSpace(string(text)), file + " (--token-file)"}.checked()
}

// checked refuses what can't be a token, without showing it.
func (c credential) checked() (credential, error) {
	if c.token == "" || strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return credential{}, fmt.Errorf("%s holds no token: that is one word, as `semel token` prints it; nothing was asked", c.from)
	}
	return c, nil
}

// A target is the server that is spoken to, and who named it.
type target struct{ url, from string }

const defaultServer = "http://127.0.0.1:8787"

// findServer takes the flag, or else the environment, or else the usual address.
func findServer(flagged string) (target, error) {
	t := target{flagged, "--server"}
	if t.url == "" {
		t = target{os.Getenv("SEMEL_SERVER"), "SEMEL_SERVER"}
	}
	if t.url == "" {
		t = target{defaultServer, "the default: say --server URL or set SEMEL_SERVER for another"}
	}
	u, err := url.Parse(t.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return t, fmt.Errorf("%s: %q is not the URL of a server: write it as in %s; nothing was asked", t.from, t.url, defaultServer)
	}
	t.url = strings.TrimSuffix(t.url, "/")
	return t, nil
}

func (t target) String() string { return t.url + " (" + t.from + ")" }

// call returns the answer's body, or why there is none, in an operator's words.
func (c *opCommand) call(ctx context.Context, method, path string, body []byte, header ...string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.server.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.who.token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	// A redirection is not followed: DELETE and PUT would become GET, and the answer
	// to a look-up would pass for theirs.
	client := &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, c.noAnswer(method, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, c.noAnswer(method, err)
	}
	if resp.StatusCode/100 == 3 {
		return nil, c.redirected(resp, path)
	}
	if resp.StatusCode/100 != 2 {
		return nil, c.refused(method, resp, text)
	}
	return text, nil
}

// noAnswer says what is known when no answer came.
func (c *opCommand) noAnswer(method string, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without method and URL
	}
	var dial *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial", errors.As(err, &name):
		return fmt.Errorf("no server is reached at %s, so nothing was done: %w", c.server, err)
	case method == http.MethodGet:
		return fmt.Errorf("%s gave no answer; nothing was changed: %w", c.server, err)
	}
	return fmt.Errorf("unconfirmed: %s gave no answer, and it may have been recorded. %s: %w", c.server, c.again(), err)
}

// again says how to ask again for what may have been recorded.
func (c *opCommand) again() string {
	if c.verb == "resolve" {
		return fmt.Sprintf("Run the same command again with --revision %d: a verdict that is on record is then answered, and not recorded twice", c.revision)
	}
	return "Run the same command again: what is on record is answered, and not done twice"
}

// undone says what the refused command has not done.
func (c *opCommand) undone() string {
	switch c.verb {
	case "resolve":
		return "no verdict was recorded"
	case "abandon":
		return "nothing was abandoned"
	}
	return "nothing was changed"
}

// redirected refuses to go where the answer to a call of path sends on to.
func (c *opCommand) redirected(resp *http.Response, path string) error {
	where := ""
	if to, err := resp.Location(); err == nil {
		where = fmt.Sprintf(" and sends on to %q", strings.TrimSuffix(to.String(), path))
	}
	return fmt.Errorf("%s answers %q%s: give the server's final URL\n%s", c.server, resp.Status, where, c.undone())
}

// refused tells a refusal: what is wrong, what was not done, what to do about it.
func (c *opCommand) refused(method string, resp *http.Response, text []byte) error {
	p, ok := problem.Decode(resp.StatusCode, resp.Header, text)
	if !ok {
		msg := fmt.Sprintf("%s answers %q, but not as a Semel server does: is that its address?", c.server, resp.Status)
		if method == http.MethodGet || resp.StatusCode < 500 {
			return errors.New(msg + "\n" + c.undone())
		}
		return errors.New(msg + "\nit may have been recorded. " + c.again())
	}
	what, advice := p.Detail, p.Hint
	if what == "" {
		what = p.Title
	}
	switch p.Code {
	case semel.CodeUnauthenticated:
		what = fmt.Sprintf("the server %s does not know the token in %s, or the token has expired", c.server, c.who.from)
		advice = "use a token of this server: set SEMEL_TOKEN, or say --token-file FILE. `semel token` makes one, and its hash goes into the server's configuration"
	case semel.CodeForbidden:
		what, advice = c.forbidden(p)
	case semel.CodeNotFound, semel.CodeUnknownKind:
		what, advice = c.notFound(p)
	case semel.CodeTooMany:
		advice = "wait a little, then run the same command again"
	case semel.CodeUnavailable:
		what, advice = "the server can't reach its database", "run the same command again when it can"
	case semel.CodeInternal:
		advice = "the server's log says more"
	case semel.CodeInvalid:
		if p.Status == http.StatusNotFound || p.Status == http.StatusMethodNotAllowed {
			what, advice = fmt.Sprintf("the server %s does not know this command", c.server), "is that its address, without a path behind it, and is it as new as this program?"
		}
	case semel.CodeStaleRevision:
		what = "the operation was changed since the revision that you have seen"
		advice = fmt.Sprintf("look at it again (semel op history %s), then decide", c.operation)
	case semel.CodeNotReconcilable:
		advice = "there is nothing to decide: it is not in doubt, or has been resolved (semel op history " + c.operation + ")"
	case semel.CodeAlreadyStarted:
		advice = "look at it until it is settled: semel op get " + c.operation
	}
	msg := string(p.Code) + ": " + what
	if p.Operation != nil {
		msg += fmt.Sprintf("\nits state is %s, revision %d", p.Operation.State, p.Operation.Revision)
	}
	if resp.StatusCode >= 500 && p.Recorded != semel.RecordedNo && method != http.MethodGet {
		return errors.New(msg + "\nit may have been recorded. " + c.again())
	}
	msg += "\n" + c.undone()
	if advice != "" {
		msg += "; " + advice
	}
	return errors.New(msg)
}

// forbidden is about a token of the wrong sort: an account's, or an operator's.
func (c *opCommand) forbidden(p problem.Problem) (what, advice string) {
	switch {
	case c.operator:
		return fmt.Sprintf("the token in %s is an account's, and this is for operators", c.who.from),
			"use an operator's token (set SEMEL_TOKEN, or say --token-file FILE), or leave the account out to see what is the token's own"
	case c.verb == "abandon":
		return fmt.Sprintf("the token in %s is an operator's without an account of its own, and abandoning is the account's own matter", c.who.from),
			"use a token of the account: set SEMEL_TOKEN, or say --token-file FILE"
	case p.Detail != "":
		return fmt.Sprintf("the token in %s is an operator's without an account of its own", c.who.from),
			"name the account: ACCOUNT/KIND/ID, or --account for a list"
	}
	return p.Title, ""
}

// notFound is about an operation that is not there, or is not this token's to see.
func (c *opCommand) notFound(p problem.Problem) (what, advice string) {
	if p.Code == semel.CodeUnknownKind {
		return fmt.Sprintf("the server %s has no such kind", c.server), "its configuration names the kinds"
	}
	what = fmt.Sprintf("there is no %s on %s, or the token in %s may not see it", c.operation, c.server, c.who.from)
	if c.operator {
		return what, "`semel op list --account '*'` shows what it may see. Not found is no proof that it never happened or will: the request may still be on its way"
	}
	return what, "operators name the account as well: ACCOUNT/KIND/ID. Not found is no proof that it never happened or will: the request may still be on its way"
}
