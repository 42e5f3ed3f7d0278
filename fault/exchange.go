package fault

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// upstream is what a request is finally given to: the network, or a handler.
type upstream interface {
	// roundTrip delivers req and returns the answer, like an http.RoundTripper.
	roundTrip(x *exchange, req *http.Request) (*http.Response, error)
	// partial delivers the header and n bytes of body, and breaks. It returns
	// an error where nothing could be delivered.
	partial(x *exchange, req *http.Request, body []byte, n int64) error
}

// exchange is one request on its way, with the rule that it met.
type exchange struct {
	*record
	rule *Rule // nil: nothing happens to it
	up   upstream
	once sync.Once // of carriedOut
}

// carriedOut notes, once, that the rule has been carried out.
func (x *exchange) carriedOut() { x.once.Do(func() { x.faulted(x.rule) }) }

// begin counts req for the rules and opens its entry. The entry has one part,
// which the caller ends.
func (in *Injector) begin(req *http.Request, up upstream, applies func(*Rule) bool) (*exchange, error) {
	f := factsOf(req)
	in.mu.Lock()
	closed := in.closed
	in.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	rule := in.pick(func(r *Rule) bool { return applies(r) && r.selects(f) })
	e := Entry{
		Method: f.method, Host: f.host, Path: f.path,
		Key: req.Header.Get("Idempotency-Key"), Remote: req.RemoteAddr,
	}
	if req.RemoteAddr != "" {
		e.Proto = req.Proto
	}
	if rule != nil {
		e.Rule = rule.String()
	}
	return &exchange{record: in.open(e), rule: rule, up: up}, nil
}

func factsOf(req *http.Request) facts {
	f := facts{method: req.Method, path: req.URL.Path, host: req.Host, header: req.Header}
	if f.method == "" {
		f.method = http.MethodGet
	}
	if f.host == "" {
		f.host = req.URL.Host
	}
	return f
}

// run delivers req as the rule has it. An *Error is a cut. It closes the
// request's body, now or when whatever goes on without the caller is done
// with it.
func (x *exchange) run(req *http.Request) (*http.Response, error) {
	x.add()
	resp, err := x.broken(req)
	if err != nil {
		outcome := Failed
		if req.Context().Err() != nil {
			outcome = ClientGone
		}
		var cut *Error
		if errors.As(err, &cut) {
			x.carriedOut()
		} else {
			x.ended(outcome, err)
		}
		x.done()
		return nil, err
	}
	resp.Request = req
	x.edit(func(e *Entry) { e.Status = resp.StatusCode })
	x.meter(resp)
	return resp, nil
}

// broken is the table of the faults.
func (x *exchange) broken(req *http.Request) (*http.Response, error) {
	rule := x.rule
	if rule == nil {
		return x.send(req)
	}
	switch rule.Fault {
	case LoseAnswer:
		return x.lose(req)
	case Status:
		_, err := x.detached(req, errand{send: x.send, whole: true})
		return x.told(req, err)
	case StatusBefore:
		closeBody(req)
		return x.told(req, nil)
	case CutBefore:
		closeBody(req)
		return nil, cutError(rule)
	case CutDuring:
		return nil, x.half(req)
	case CutAfter:
		return x.cutAfter(req)
	case Delay, Hold:
		return x.late(req)
	case Duplicate:
		resp, err := x.detached(req, errand{send: x.twice, whole: true})
		if err == nil {
			x.carriedOut()
		}
		return resp, err
	default: // ResetStream, ReplayOldConnection
		if rule.at() == After {
			return x.lose(req)
		}
		closeBody(req)
		return nil, cutError(rule)
	}
}

// send gives req to the upstream and notes what it says.
func (x *exchange) send(req *http.Request) (*http.Response, error) {
	resp, err := x.up.roundTrip(x, req)
	if err != nil {
		return nil, err
	}
	x.edit(func(e *Entry) { e.Upstream = append(e.Upstream, resp.StatusCode) })
	return resp, nil
}

// lose lets the upstream complete req, and cuts.
func (x *exchange) lose(req *http.Request) (*http.Response, error) {
	if _, err := x.detached(req, errand{send: x.send, whole: true, then: x.carriedOut}); err != nil {
		return nil, err
	}
	return nil, cutError(x.rule)
}

// told answers in the upstream's place.
func (x *exchange) told(req *http.Request, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	x.carriedOut()
	code := x.rule.status()
	text := http.StatusText(code)
	if text == "" {
		text = "Status " + strconv.Itoa(code)
	}
	text += "\n"
	resp := &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Content-Length": {strconv.Itoa(len(text))}},
		ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader([]byte(text))),
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp, nil
}

// half sends the beginning of req, and cuts.
func (x *exchange) half(req *http.Request) error {
	body, err := readBody(req)
	if err != nil {
		return err
	}
	n := x.rule.cutPoint(int64(len(body)))
	// The whole body would be a whole request, and those may be completed.
	n = max(0, min(n, int64(len(body))-1))
	if err := x.up.partial(x, req, body, n); err != nil {
		return err
	}
	x.edit(func(e *Entry) { e.Sent += n })
	return cutError(x.rule)
}

// cutAfter returns an answer whose body breaks.
func (x *exchange) cutAfter(req *http.Request) (*http.Response, error) {
	half := x.rule.Bytes == 0
	resp, err := x.detached(req, errand{send: x.send, whole: half})
	if err != nil {
		return nil, err
	}
	n := x.rule.cutPoint(1 << 62)
	if whole, ok := resp.Body.(*wholeBody); ok {
		n = x.rule.cutPoint(int64(whole.Len()))
	}
	resp.Body = &cutBody{ReadCloser: resp.Body, x: x, left: n}
	return resp, nil
}

// late is a request, or an answer, that waits.
func (x *exchange) late(req *http.Request) (*http.Response, error) {
	if x.rule.at() == Before {
		return x.detached(req, errand{send: x.send, first: func(ctx context.Context) error {
			err := x.wait(ctx, x.rule)
			if err == nil {
				x.carriedOut()
			}
			return err
		}})
	}
	resp, err := x.detached(req, errand{send: x.send, whole: true})
	if err != nil {
		return nil, err
	}
	if err := x.wait(req.Context(), x.rule); err != nil {
		return nil, err
	}
	x.carriedOut()
	return resp, nil
}

// twice sends req two times and returns the answer that the rule wants. It
// runs detached, so the body is in memory.
func (x *exchange) twice(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	var answers [2]*http.Response
	var errs [2]error
	once := func(i int) {
		if answers[i], errs[i] = x.send(withBody(req, req.Context(), body)); errs[i] == nil {
			errs[i] = readWhole(answers[i])
		}
	}
	if x.rule.Parallel {
		var both sync.WaitGroup
		both.Go(func() { once(0) })
		both.Go(func() { once(1) })
		both.Wait()
	} else {
		once(0)
		once(1)
	}
	if x.rule.Second {
		return answers[1], errs[1]
	}
	return answers[0], errs[0]
}

// meter counts the answer's body on its way to the caller, and ends the
// exchange with it.
func (x *exchange) meter(resp *http.Response) {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		x.done() // the body is the connection, and somebody else's now
	case resp.Body == nil || resp.Body == http.NoBody:
		resp.Body = http.NoBody
		x.done()
	default:
		resp.Body = &meteredBody{ReadCloser: resp.Body, x: x}
	}
}
