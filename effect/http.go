package effect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// An HTTPSpec describes an effect that is one HTTP request. It is data: the
// contract says what the request promises, the spec says where it goes and what
// of the answer is kept.
type HTTPSpec struct {
	// URL is where the request goes. Behind the host it may have variables: {key}
	// is the key at the external service, {params:/pointer} a value from the
	// parameters; they are escaped.
	URL string `json:"url"`
	// Method is the request's method. POST, PUT and PATCH carry the stored request
	// as their body, others have none. Methods that change nothing are refused.
	// Defaults to POST.
	Method string `json:"method,omitempty"`
	// ContentType is the body's. Defaults to "application/json".
	ContentType string `json:"content_type,omitempty"`
	// Headers are sent as they are. Defaults to none.
	Headers map[string]string `json:"headers,omitempty"`
	// SecretHeaders are headers with references to environment variables, as in
	// "Bearer ${PAY_TOKEN}". Defaults to none.
	SecretHeaders map[string]string `json:"secret_headers,omitempty"`
	// ClientID goes into the header that the contract's carrier names for the
	// client's identity. Defaults to none.
	ClientID string `json:"client_id,omitempty"`
	// MaxResponse is how many bytes of an answer are kept. A longer one counts all
	// the same; the result then says that it was left out. Defaults to 1 MiB.
	MaxResponse int64 `json:"max_response,omitempty"`
	// Result makes the operation's result. Defaults to the whole body.
	Result Mapping `json:"result,omitempty"`
	// Refusal says where a refusal gives its reason. Defaults to a text of our own.
	Refusal Reason `json:"refusal,omitzero"`
	// LookUp says how an operation is found. Needed where, and only where, the
	// contract has a look-up. Defaults to none.
	LookUp *LookUpSpec `json:"look_up,omitempty"`
}

// HTTPOptions configure what a spec can't say as data.
type HTTPOptions struct {
	// Authorize sets credentials on every request, look-ups too. An error means
	// that nothing was sent; it is tried again. Defaults to nothing.
	Authorize func(ctx context.Context, req *http.Request) error
	// Transport sends. It must not repeat requests by itself. Defaults to a
	// transport like [http.DefaultTransport], without the repeats.
	Transport http.RoundTripper
	// LookupEnv reads environment variables. Defaults to [os.LookupEnv].
	LookupEnv func(name string) (string, bool)
}

// HTTP is an [Effect], [Finder], [Checker] and [Hoster] made of an [HTTPSpec]. It
// is safe for concurrent use.
type HTTP struct {
	spec   HTTPSpec
	opts   HTTPOptions
	url    template
	look   template
	header http.Header // from Headers and SecretHeaders
	kept   http.RoundTripper
	fresh  http.RoundTripper // for calls that nobody could find out about
}

var (
	envReference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	headerName   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// NewHTTP makes an effect. It reports everything that is wrong with the spec.
func NewHTTP(spec HTTPSpec, options *HTTPOptions) (*HTTP, error) {
	h := &HTTP{spec: spec, header: http.Header{}}
	if options != nil {
		h.opts = *options
	}
	h.setDefaults()
	var problems []error
	note := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	var err error
	h.url, err = parseTemplate(spec.URL)
	note(err)
	if readsOnly(h.spec.Method) || strings.ToUpper(h.spec.Method) != h.spec.Method {
		note(fmt.Errorf("method %q: an effect needs a method that changes something, in capitals", h.spec.Method))
	}
	note(h.setHeaders())
	for name, from := range spec.Result {
		note(checkSource("result."+name, from))
	}
	note(checkPointer("refusal.code", spec.Refusal.Code))
	note(checkPointer("refusal.message", spec.Refusal.Message))
	if spec.LookUp != nil {
		note(h.setLookUp())
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return h, nil
}

func (h *HTTP) setDefaults() {
	if h.spec.Method == "" {
		h.spec.Method = http.MethodPost
	}
	if h.spec.ContentType == "" {
		h.spec.ContentType = "application/json"
	}
	if h.spec.MaxResponse <= 0 {
		h.spec.MaxResponse = 1 << 20
	}
	if h.opts.LookupEnv == nil {
		h.opts.LookupEnv = os.LookupEnv
	}
	switch t := h.opts.Transport.(type) {
	case nil:
		h.kept, h.fresh = sharedTransport, newTransport(true)
	case *http.Transport:
		once := t.Clone()
		once.DisableKeepAlives = true
		h.kept, h.fresh = t, once
	default:
		h.kept, h.fresh = t, t
	}
}

func (h *HTTP) setHeaders() error {
	for name, value := range h.spec.Headers {
		if err := checkHeader(name, value); err != nil {
			return fmt.Errorf("headers: %w", err)
		}
		h.header.Set(name, value)
	}
	for name, value := range h.spec.SecretHeaders {
		for _, m := range envReference.FindAllStringSubmatch(value, -1) {
			secret, ok := h.opts.LookupEnv(m[1])
			if !ok || secret == "" {
				return fmt.Errorf("secret_headers.%s: the environment variable %s is not set", name, m[1])
			}
			value = strings.ReplaceAll(value, m[0], secret)
		}
		if err := checkHeader(name, value); err != nil {
			return fmt.Errorf("secret_headers: %w", err)
		}
		h.header.Set(name, value)
	}
	return nil
}

func checkHeader(name, value string) error {
	if !headerName.MatchString(name) {
		return fmt.Errorf("%q is not a header's name", name)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("the value of %s can't stand in a header", name) // it may be a secret
	}
	return nil
}

func checkSource(name, from string) error {
	if header, ok := strings.CutPrefix(from, "header:"); ok {
		return checkHeader(header, "")
	}
	return checkPointer(name, from)
}

// Host returns the host of the external service.
func (h *HTTP) Host() string { return h.url.host }

// Check reports whether the spec can keep the contract's rules: the key has a
// place that the method allows, and a look-up is there if and only if the
// contract has one.
func (h *HTTP) Check(c contract.Contract) error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	place, carried := h.place(c.Carrier)
	pathName := ""
	if c.Carrier.In != "" {
		if _, _, err := downstreamKey(c, semel.Key{Account: "a", Kind: "k", ID: "i"}); err != nil {
			complain("no key can be made under contract %q: %w", c.Name, err)
		}
		switch {
		case !carried:
			complain("contract %q has no place for a key on %s with this URL (a key in the path needs {key})", c.Name, h.spec.Method)
		case !c.Honours(h.spec.Method):
			complain("contract %q honours a key on %s, not on %s", c.Name, strings.Join(c.Use.Methods, ", "), h.spec.Method)
		case place.In == contract.InPath:
			pathName = place.Name
		}
		if c.Carrier.Client != "" && h.spec.ClientID == "" {
			complain("contract %q needs a client_id", c.Name)
		}
	}
	if name := h.url.unknown(pathName); name != "" {
		complain("url: there is no variable {%s}", name)
	}
	switch {
	case c.LookUp.By != "" && h.spec.LookUp == nil:
		complain("contract %q has a look-up, so look_up must say how", c.Name)
	case c.LookUp.By == "" && h.spec.LookUp != nil:
		complain("look_up is given, and contract %q has none: say what \"not found\" proves", c.Name)
	case h.spec.LookUp != nil:
		problems = append(problems, h.checkLookUp(c, pathName)...)
	}
	return errors.Join(problems...)
}

// Do sends the request once.
func (h *HTTP) Do(ctx context.Context, call *Call) Result {
	req, about, err := h.request(ctx, call)
	if err != nil {
		return notBuilt(err)
	}
	if err := h.authorize(ctx, req); err != nil {
		return unauthorized()
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return tooLate()
	}
	transport := h.kept
	if about.hopeless {
		transport = h.fresh
	}
	var tracer contract.Tracer
	resp, err := transport.RoundTrip(once(req, &tracer))
	if err != nil {
		wire := contract.WireFrom(err, tracer.Facts())
		return Result{Proof: call.Contract.Classify(about.Request, wire, nil), Wire: &wire, Sends: wire.Sends}
	}
	a, arrival, err := readAnswer(resp, h.spec.MaxResponse)
	wire := contract.WireFrom(err, tracer.Facts())
	wire.Arrival = arrival
	r := Result{Wire: &wire, Sends: max(wire.Sends, 1), Bytes: int64(len(a.body))}
	r.Proof = call.Contract.Classify(about.Request, wire, &contract.Answer{Status: a.status, Header: a.header, Body: a.body})
	r.Proof.WaitAtLeast = waitAtLeast(a.header)
	switch r.Proof.Proves {
	case contract.Applied:
		r.Output = a.output(h.spec.Result)
	case contract.Refused:
		r.Failure = a.failure(h.spec.Refusal)
	}
	return r
}

// about is what the contract must know of a request.
type about struct {
	contract.Request
	hopeless bool // neither a repeat nor a look-up could find out
}

// request builds the request: the same bytes for the same call, always.
func (h *HTTP) request(ctx context.Context, call *Call) (*http.Request, about, error) {
	c := call.Contract
	a := about{Request: contract.Request{Method: h.spec.Method, Replayable: true}, hopeless: c.Shape().Opaque()}
	var wire, bare string
	place, carried := h.place(c.Carrier)
	if carried || h.url.has("key") {
		var err error
		if wire, bare, err = downstreamKey(c, call.Key); err != nil {
			return nil, a, err
		}
	}
	u, err := h.url.expand(bare, call.Params)
	if err != nil {
		return nil, a, err
	}
	req := (&http.Request{Method: h.spec.Method, URL: u, Host: u.Host, Header: h.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	var body []byte
	if hasBody(h.spec.Method) {
		body = call.Request
		req.Header.Set("Content-Type", h.spec.ContentType)
	}
	if carried {
		a.Keyed = true
		if body, err = carry(c.Carrier, place, req, body, wire, bare); err != nil {
			return nil, a, err
		}
		if c.Carrier.FirstSent != "" {
			req.Header.Set(c.Carrier.FirstSent, call.FirstSent.UTC().Format(http.TimeFormat))
		}
		if c.Carrier.Client != "" {
			req.Header.Set(c.Carrier.Client, h.spec.ClientID)
		}
	}
	req.ContentLength = int64(len(body))
	req.Body = io.NopCloser(bytes.NewReader(body)) // no GetBody: see once
	return req, a, nil
}

func (h *HTTP) authorize(ctx context.Context, req *http.Request) error {
	if h.opts.Authorize == nil {
		return nil
	}
	return h.opts.Authorize(ctx, req)
}

// notBuilt is the result where no request can be made of these parameters:
// nothing was sent, and trying again is pointless.
func notBuilt(err error) Result {
	return Result{
		Proof: contract.Proof{Proves: contract.Refused, Reach: contract.ReachThis, Cause: "not_built",
			Reason: "nothing was sent: no request can be made of this operation"},
		Failure: &semel.Failure{Code: "request-not-built", Message: err.Error()},
		Wire:    &contract.Wire{Going: contract.NotBegun},
	}
}

// unauthorized is the result where credentials could not be had. The error may
// hold a secret, so it is left out.
func unauthorized() Result {
	return Result{
		Proof: contract.Proof{Proves: contract.NotSent, Reach: contract.ReachThis, Cause: "no_credentials",
			Reason: "nothing was sent: no credentials could be had"},
		Failure: &semel.Failure{Code: "no-credentials", Message: "No credentials for the external service could be had."},
		Wire:    &contract.Wire{Going: contract.NotBegun},
	}
}

// tooLate is the result where the call's time had passed before anything was sent,
// as in a process that was stopped for a while and then woken up.
func tooLate() Result {
	return Result{
		Proof: contract.Proof{Proves: contract.NotSent, Reach: contract.ReachThis, Cause: "too_late",
			Reason: "nothing was sent: the time for this call had passed before it began"},
		Failure: &semel.Failure{Code: "too-late", Message: "The call was not begun in time; nothing was sent."},
		Wire:    &contract.Wire{Going: contract.NotBegun},
	}
}
