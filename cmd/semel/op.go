package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/semel-dev/semel"
)

// opCommand is one call of `semel op`.
type opCommand struct {
	server                  target
	who                     credential
	verb, operation         string // as they were said
	operator                bool   // it is an operator's call
	asJSON                  bool
	account, kind, state    string
	size                    int
	verdict, then, evidence string
	result                  string
	revision                int64
	out                     io.Writer
}

func runOp(ctx context.Context, args []string) error {
	c := &opCommand{out: os.Stdout}
	set := flags("op")
	server := set.String("server", "", "the server's `URL`; else SEMEL_SERVER is read (default "+defaultServer+")")
	tokenFile := set.String("token-file", "", "a `FILE` that holds the token; else SEMEL_TOKEN is read")
	set.BoolVar(&c.asJSON, "json", false, "print what the server said")
	set.StringVar(&c.account, "account", "", "list: operations of this account, as operator (\"*\": of all that you may see)")
	set.StringVar(&c.kind, "kind", "", "list: only this kind")
	set.StringVar(&c.state, "state", "", "list: only this state")
	set.IntVar(&c.size, "size", 50, "list: how many")
	set.StringVar(&c.verdict, "verdict", "", "resolve: applied, not_applied or acknowledged")
	set.StringVar(&c.then, "then", "", "resolve: after not_applied, retry or fail")
	set.StringVar(&c.evidence, "evidence", "", "resolve: how you know")
	set.StringVar(&c.result, "result", "", "resolve: the result to store with applied, as JSON")
	set.Int64Var(&c.revision, "revision", 0, "resolve: the revision that you have seen (default: look now)")

	words, err := parseWords(set, args)
	if errors.Is(err, flag.ErrHelp) {
		writeHelp(os.Stdout, opPage(words), set)
	}
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return wrongCall("op", "say what to do")
	}
	name := opPage(words)
	if name == "op" {
		return wrongCall("op", "there is no %q", words[0])
	}
	if want := map[bool]int{true: 1, false: 2}[words[0] == "list"]; len(words) < want {
		return wrongCall(name, "say which operation")
	} else if len(words) > want {
		return wrongCall(name, "%q is one word too many", words[want])
	}
	if c.result != "" && !json.Valid([]byte(c.result)) {
		return wrongCall(name, "--result is not JSON: put strings into quotes, such as '\"x\"'")
	}
	if c.server, err = findServer(*server); err != nil {
		return err
	}
	if c.who, err = readToken(*tokenFile); err != nil {
		return err
	}
	return c.run(ctx, words)
}

// opPage is the page of a verb; that of the whole if there is no such verb.
func opPage(words []string) string {
	if len(words) > 0 {
		if _, ok := manuals["op "+words[0]]; ok {
			return "op " + words[0]
		}
	}
	return "op"
}

func (c *opCommand) run(ctx context.Context, words []string) error {
	if c.verb = words[0]; c.verb == "list" {
		return c.list(ctx)
	}
	c.operation = words[1]
	path, operator, err := operationPath(words[1])
	if err != nil {
		return wrongCall("op "+c.verb, "%s", err)
	}
	c.operator = operator
	switch c.verb {
	case "abandon":
		if operator {
			return wrongCall("op abandon", "abandoning is the account's own matter: leave the account out, and use one of its tokens")
		}
		return c.show(ctx, http.MethodDelete, path)
	case "history":
		return c.history(ctx, path)
	case "resolve":
		if !operator {
			return wrongCall("op resolve", "resolving is an operator's call: say ACCOUNT/KIND/ID")
		}
		return c.resolve(ctx, path)
	}
	return c.show(ctx, http.MethodGet, path)
}

// operationPath turns KIND/ID or ACCOUNT/KIND/ID into the path of a URL.
func operationPath(word string) (path string, operator bool, err error) {
	parts := strings.Split(word, "/")
	key := semel.Key{Account: "x", Kind: parts[0], ID: parts[len(parts)-1]}
	switch len(parts) {
	case 2:
		path = "/v1/operations/" + word
	case 3:
		key.Account, key.Kind = parts[0], parts[1]
		path, operator = "/v1/operator/operations/"+word, true
	default:
		return "", false, fmt.Errorf("%q is neither KIND/ID nor ACCOUNT/KIND/ID", word)
	}
	return path, operator, key.Validate()
}

func (c *opCommand) list(ctx context.Context) error {
	query := url.Values{"page_size": {fmt.Sprint(c.size)}}
	path := "/v1/operations"
	if c.account != "" {
		path, c.operator = "/v1/operator/operations", true
		if c.account != "*" {
			query.Set("account", c.account)
		}
	}
	for name, value := range map[string]string{"kind": c.kind, "state": c.state} {
		if value != "" {
			query.Set(name, value)
		}
	}
	text, err := c.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil)
	if err != nil || c.asJSON {
		return c.raw(text, err)
	}
	var page struct {
		Operations []semel.Operation `json:"operations"`
		Next       string            `json:"next_page_token"`
	}
	if err := json.Unmarshal(text, &page); err != nil || page.Operations == nil {
		return errors.New("the answer is no list of operations: is that a Semel server?")
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATE\tOPERATION\tCREATED\tEXECUTIONS\tREASON")
	for _, op := range page.Operations {
		reason := ""
		if op.Failure != nil {
			reason = op.Failure.Code
		}
		if op.Contradicted {
			reason += " CONTRADICTED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", op.State, op.Key, op.CreatedAt.Format(time.RFC3339), op.Executions, reason)
	}
	if page.Next != "" {
		fmt.Fprintf(w, "\nthere are more: say --size\n")
	}
	return w.Flush()
}

func (c *opCommand) show(ctx context.Context, method, path string) error {
	text, err := c.call(ctx, method, path, nil)
	if err != nil || c.asJSON {
		return c.raw(text, err)
	}
	var op semel.Operation
	if err := json.Unmarshal(text, &op); err != nil {
		return err
	}
	return c.print(op)
}

func (c *opCommand) print(op semel.Operation) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	line("operation", op.Key)
	line("state", op.State)
	if op.Failure != nil {
		line("reason", strings.TrimSpace(op.Failure.Code+" "+op.Failure.Message))
	}
	if op.Contradicted {
		line("contradicted", "a late result says otherwise: see the history")
	}
	line("attempts", op.Attempts)
	line("executions", op.Executions)
	line("revision", op.Revision)
	line("created", op.CreatedAt.Format(time.RFC3339Nano))
	line("updated", op.UpdatedAt.Format(time.RFC3339Nano))
	if len(op.Result) > 0 {
		line("result", string(op.Result))
	}
	return w.Flush()
}

func (c *opCommand) history(ctx context.Context, path string) error {
	text, err := c.call(ctx, http.MethodGet, path+"/history", nil)
	if err != nil || c.asJSON {
		return c.raw(text, err)
	}
	var h semel.History
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	when := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format("2006-01-02 15:04:05.000")
	}
	for _, a := range h.Attempts {
		fmt.Fprintf(w, "attempt\t%s\t%s\n", when(a.At), a.ID)
	}
	for _, x := range h.Executions {
		fmt.Fprintf(w, "execution %d\t%s\tbegun %s, ended %s: %s\t%s\n", x.Token, when(x.ClaimedAt), when(x.BegunAt), when(x.EndedAt), orDash(string(x.Outcome)), x.Evidence)
		if x.LateOutcome != "" {
			fmt.Fprintf(w, "  late\t%s\t%s\t%s\n", when(x.LateAt), x.LateOutcome, x.LateEvidence)
		}
	}
	for _, v := range h.Verdicts {
		fmt.Fprintf(w, "verdict\t%s\t%s %s by %s\t%s\n", when(v.At), v.Verdict, v.Then, v.By, v.Evidence)
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (c *opCommand) resolve(ctx context.Context, path string) error {
	if c.verdict == "" || c.evidence == "" {
		return wrongCall("op resolve", "--verdict and --evidence are missing: what happened, and how do you know?")
	}
	if c.revision == 0 {
		text, err := c.call(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		var op semel.Operation
		if err := json.Unmarshal(text, &op); err != nil {
			return err
		}
		c.revision = op.Revision
	}
	r := semel.Resolution{Verdict: c.verdict, Then: c.then, Evidence: c.evidence}
	if c.result != "" {
		r.Result = json.RawMessage(c.result)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	text, err := c.call(ctx, http.MethodPut, path+"/resolution", body, "If-Match", fmt.Sprintf("%q", fmt.Sprint(c.revision)))
	if err != nil || c.asJSON {
		return c.raw(text, err)
	}
	var op semel.Operation
	if err := json.Unmarshal(text, &op); err != nil {
		return err
	}
	return c.print(op)
}

func (c *opCommand) raw(text []byte, err error) error {
	if err == nil {
		_, err = fmt.Fprintf(c.out, "%s\n", bytes.TrimSpace(text))
	}
	return err
}
