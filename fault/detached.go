package fault

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// errand is what a detached request does.
type errand struct {
	first func(context.Context) error // before anything is sent; may be nil
	send  func(*http.Request) (*http.Response, error)
	whole bool   // read the whole answer, which becomes a *wholeBody
	then  func() // when the upstream has completed it; may be nil
}

type outcome struct {
	resp *http.Response
	err  error
}

// detached carries req to its end, whether or not the caller stays. It
// returns the answer to a caller that did, and otherwise the error of the
// caller's context while the errand goes on.
func (x *exchange) detached(req *http.Request, e errand) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	caller := req.Context()
	handover := make(chan outcome)
	x.add()
	started := x.in.start(func() {
		defer x.done()
		ctx, cancel := x.in.detach(caller)
		resp, err := x.carry(ctx, withBody(req, ctx, body), e)
		if resp == nil || e.whole {
			cancel()
		} else {
			own(resp, cancel)
		}
		select {
		case handover <- outcome{resp, err}:
		case <-caller.Done():
			if resp != nil {
				drain(resp.Body)
			}
		}
	})
	if !started {
		x.done()
		return nil, ErrClosed
	}
	select {
	case o := <-handover:
		return o.resp, o.err
	case <-caller.Done():
		return nil, caller.Err()
	}
}

func (x *exchange) carry(ctx context.Context, req *http.Request, e errand) (*http.Response, error) {
	if e.first != nil {
		if err := e.first(ctx); err != nil {
			return nil, err
		}
	}
	resp, err := e.send(req)
	if err == nil && e.whole {
		err = readWhole(resp)
	}
	if err != nil {
		return nil, err
	}
	if e.then != nil {
		e.then()
	}
	return resp, nil
}

// readBody reads and closes the request's body. Where the caller gives up
// meanwhile, closing the body ends the read.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	stop := context.AfterFunc(req.Context(), func() { req.Body.Close() })
	body, err := io.ReadAll(req.Body)
	if stop() {
		req.Body.Close()
	}
	return body, err
}

// withBody returns a copy of req with a body from memory. It has no GetBody,
// so that no transport sends it again by itself.
func withBody(req *http.Request, ctx context.Context, body []byte) *http.Request {
	c := req.Clone(ctx)
	c.GetBody = nil
	if len(body) == 0 && req.ContentLength >= 0 {
		c.Body = http.NoBody
		return c
	}
	c.Body = io.NopCloser(bytes.NewReader(body))
	return c
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// wholeBody is an answer's body that has been read to its end.
type wholeBody struct{ *bytes.Reader }

func (wholeBody) Close() error { return nil }

func readWhole(resp *http.Response) error {
	if _, ok := resp.Body.(*wholeBody); ok {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = &wholeBody{bytes.NewReader(body)}
	return err
}

func drain(body io.ReadCloser) {
	io.Copy(io.Discard, body)
	body.Close()
}

// ownedBody ends the context of a detached request when its reader is done.
type ownedBody struct {
	io.ReadCloser
	release context.CancelFunc
}

// ownedConn is the same for an answer that has become a connection.
type ownedConn struct {
	ownedBody
	io.Writer
}

func own(resp *http.Response, release context.CancelFunc) {
	if resp.Body == nil || resp.Body == http.NoBody {
		release()
		return
	}
	owned := ownedBody{ReadCloser: resp.Body, release: release}
	if w, ok := resp.Body.(io.Writer); ok {
		resp.Body = &ownedConn{ownedBody: owned, Writer: w}
		return
	}
	resp.Body = &owned
}

func (b *ownedBody) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
}

// meteredBody counts what the caller reads, and ends the exchange once.
type meteredBody struct {
	io.ReadCloser
	x     *exchange
	ended bool
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.edit(func(e *Entry) { e.Received += int64(n) })
	if err != nil && !b.ended {
		b.ended = true
		if err != io.EOF {
			b.x.ended(Failed, err)
		}
		b.x.done()
	}
	return n, err
}

func (b *meteredBody) Close() error {
	err := b.ReadCloser.Close()
	if !b.ended {
		b.ended = true
		b.x.done()
	}
	return err
}

// cutBody lets left bytes pass, and breaks: there, or where the body ends
// earlier. The rest is read in the background, so that the upstream completes.
type cutBody struct {
	io.ReadCloser
	x    *exchange
	left int64
	cut  bool
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left > 0 && !b.cut {
		n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		if err == nil {
			return n, nil
		}
		if err != io.EOF {
			return n, err
		}
		b.left = 0
		if n > 0 {
			return n, nil
		}
	}
	if !b.cut {
		b.cut = true
		b.x.carriedOut()
		b.x.add()
		rest := b.ReadCloser
		if !b.x.in.start(func() { defer b.x.done(); drain(rest) }) {
			rest.Close()
			b.x.done()
		}
	}
	return 0, cutError(b.x.rule)
}

func (b *cutBody) Close() error {
	if b.cut {
		return nil
	}
	return b.ReadCloser.Close()
}
