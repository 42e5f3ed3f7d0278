package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/httpapi/problem"
)

func invalid(format string, args ...any) *semel.Error {
	return &semel.Error{Code: semel.CodeInvalid, Msg: fmt.Sprintf(format, args...)}
}

// body reads a JSON body strictly and within the limit.
func (c *call) body() ([]byte, error) {
	if err := c.mediaType(); err != nil {
		return nil, err
	}
	limit := c.s.opts.MaxBody
	tooLarge := &semel.Error{Code: semel.CodeTooLarge, Msg: fmt.Sprintf("the body is larger than %d bytes", limit)}
	if c.r.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, withStatus(http.StatusRequestTimeout, invalid("the body did not arrive in time"))
	case err != nil:
		return nil, invalid("the body ended early")
	}
	if _, err := fingerprint.Parse(body); err != nil {
		return nil, invalid("the body is refused: %v", err)
	}
	return body, nil
}

// withStatus tells an error under another status than its code's.
func withStatus(status int, err error) problem.Problem {
	p := problem.Of(err)
	p.Status = status
	return p
}

// mediaType refuses a body that says it is not plain JSON.
func (c *call) mediaType() error {
	if coding := c.r.Header.Values("Content-Encoding"); len(coding) > 1 || len(coding) == 1 && !strings.EqualFold(coding[0], "identity") {
		c.w.Header().Set("Accept-Encoding", "identity")
		e := invalid("a body with Content-Encoding is not read")
		e.Hint = "send the JSON itself, without compression"
		return withStatus(http.StatusUnsupportedMediaType, e)
	}
	lines := c.r.Header.Values("Content-Type")
	if len(lines) == 1 {
		media, params, err := mime.ParseMediaType(lines[0])
		charset, said := params["charset"]
		isJSON := media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
		if err == nil && isJSON && (!said || strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	e := invalid("the body must be JSON in UTF-8, and say so")
	e.Hint = "send the header Content-Type: application/json"
	return withStatus(http.StatusUnsupportedMediaType, e)
}

// only returns the value of a header that may be there once. Two lines are two
// opinions.
func (c *call) only(name string) (value string, there bool, err error) {
	lines := c.r.Header.Values(name)
	if len(lines) > 1 {
		return "", true, invalid("the header %s is there more than once", name)
	}
	if len(lines) == 0 {
		return "", false, nil
	}
	return lines[0], true, nil
}

// keyGrammar is the Idempotency-Key of the IETF draft, with the quotes that many
// clients leave out, and the grammar of operation IDs.
var keyGrammar = contract.KeyGrammar{Charset: contract.URLSafe, MinLength: 1, MaxLength: semel.MaxIDLength, Quoting: contract.Either}

// idempotencyKey reads the header: abc and "abc" are both abc.
func (c *call) idempotencyKey() (id string, there bool, err error) {
	wire, there, err := c.only("Idempotency-Key")
	if err != nil || !there {
		return "", there, err
	}
	id, err = keyGrammar.ParseKey(strings.Trim(wire, " \t"))
	if err != nil {
		return "", true, invalid("the Idempotency-Key is not valid: %v", err)
	}
	if !semel.ValidID(id) {
		return "", true, invalid("the Idempotency-Key is not valid: it must not be . or ..")
	}
	return id, true, nil
}

// attemptID reads the name of this transmission; one that is malformed is as good
// as none.
func (c *call) attemptID() string {
	if lines := c.r.Header.Values("Attempt-Id"); len(lines) == 1 && semel.ValidID(lines[0]) {
		return lines[0]
	}
	return ""
}

// acceptUntil reads the accept deadline.
func (c *call) acceptUntil() (t time.Time, err error) {
	text, there, err := c.only("Accept-Until")
	if err != nil || !there {
		return t, err
	}
	if t.UnmarshalText([]byte(text)) != nil {
		e := invalid("Accept-Until is not a time of RFC 3339")
		e.Hint = "write it as in 2026-11-30T12:00:00Z"
		return t, e
	}
	// The zero time means "no deadline" inside, and a millisecond count that is not
	// positive might too. A deadline in the remote past has simply passed.
	if first := time.UnixMilli(1).UTC(); t.Before(first) {
		t = first
	}
	return t, nil
}

// etag writes a revision as an entity tag.
func etag(op semel.Operation) string { return `"` + strconv.FormatInt(op.Revision, 10) + `"` }

// revisionOf reads an entity tag. A weak one is taken too: proxies weaken tags
// when they compress, and a revision is exact anyhow.
func revisionOf(tag string) (int64, bool) {
	tag = strings.TrimPrefix(strings.Trim(tag, " \t"), "W/")
	if len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return 0, false
	}
	n, err := strconv.ParseInt(tag[1:len(tag)-1], 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == tag[1:len(tag)-1]
}

// ifMatch reads the one revision that the asker has seen.
func (c *call) ifMatch() (int64, error) {
	text, there, err := c.only("If-Match")
	if err != nil {
		return 0, err
	}
	if !there || strings.Trim(text, " \t") == "*" {
		return 0, &semel.Error{Code: semel.CodeRevisionRequired, Msg: "which revision is this a verdict on?",
			Hint: "send If-Match with the ETag of the operation as you have seen it"}
	}
	revision, ok := revisionOf(text)
	if !ok {
		return 0, invalid("If-Match is not one revision of an operation")
	}
	return revision, nil
}

// unchanged reports whether If-None-Match names this revision.
func (c *call) unchanged(op semel.Operation) bool {
	for _, line := range c.r.Header.Values("If-None-Match") {
		for _, tag := range strings.Split(line, ",") {
			if revision, ok := revisionOf(tag); ok && revision == op.Revision || strings.Trim(tag, " \t") == "*" {
				return true
			}
		}
	}
	return false
}

// query reads the parameters of the URL, of which each may be there once.
func (c *call) query(known ...string) (map[string]string, error) {
	parsed, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query can't be read")
	}
	values := map[string]string{}
	for name, all := range parsed {
		if !slices.Contains(known, name) {
			e := invalid("the query has a parameter that is not known")
			e.Hint = "known here are " + strings.Join(known, ", ")
			return nil, e
		}
		if len(all) > 1 {
			return nil, invalid("the parameter %s is there more than once", name)
		}
		if all[0] != "" {
			values[name] = all[0]
		}
	}
	return values, nil
}

// maxPage is the largest page.
const maxPage = 1000

// listQuery reads what is common to both lists.
func (c *call) listQuery(more ...string) (semel.Query, map[string]string, error) {
	values, err := c.query(append([]string{"kind", "state", "page_size", "page_token"}, more...)...)
	if err != nil {
		return semel.Query{}, nil, err
	}
	q := semel.Query{Kind: values["kind"], State: semel.State(values["state"]), After: values["page_token"]}
	if q.Kind != "" && !semel.ValidName(q.Kind) {
		return q, nil, invalid("kind is not the name of a kind")
	}
	if q.State != "" && !q.State.Valid() {
		e := invalid("state is not a state")
		e.Hint = "states are accepted, processing, succeeded, failed, needs_reconciliation, abandoned"
		return q, nil, e
	}
	if size, ok := values["page_size"]; ok {
		n, err := strconv.ParseUint(size, 10, 31)
		if err != nil || n == 0 {
			return q, nil, invalid("page_size is not a number from 1 to %d", maxPage)
		}
		q.Size = int(min(n, maxPage))
	}
	return q, values, nil
}
