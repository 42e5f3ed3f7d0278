package fault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// ProxyOptions are the options of [NewProxy].
type ProxyOptions struct {
	// Rules are the first rules. Defaults to none.
	Rules []Rule
	// TLS is what [Proxy.Serve] shows to clients. It needs a certificate.
	// Defaults to no TLS.
	TLS *tls.Config
	// UpstreamTLS is for a target with https. Defaults to the system's roots.
	UpstreamTLS *tls.Config
	// H2C speaks HTTP/2 without TLS to a target with http. Defaults to HTTP/1.1.
	H2C bool
	// PreserveHost sends the client's Host to the target. Defaults to the
	// target's own.
	PreserveHost bool
	// Transport sends to the target instead of the proxy's own, which opens a
	// connection per request and never sends anything a second time by itself.
	// UpstreamTLS and H2C then mean nothing. Defaults to the proxy's own.
	Transport http.RoundTripper
	// ErrorLog gets what the HTTP server has to say. Defaults to nothing.
	ErrorLog *log.Logger
}

// Proxy is a reverse proxy for HTTP/1.1 and HTTP/2 that breaks what goes
// through it. It adds and removes no header except the hop-by-hop ones, and
// sends nothing twice unless a rule says so: where the target fails, the
// client is told 502, and the log why.
//
// It is an [http.Handler] for a server of one's own (with ConnContext, as for
// [Handler]); [Proxy.Serve] and [Proxy.Listen] run one which knows HTTP/1.1
// and HTTP/2, with TLS or without, and can also choose the codes of stream
// resets.
type Proxy struct {
	*Injector
	target  *url.URL
	opts    ProxyOptions
	wire    *wire
	reverse *httputil.ReverseProxy
	torn    *http.Transport // nil: not our own

	servers sync.Mutex // of what follows
	running []*http.Server
}

// NewProxy returns a proxy to target, which has the scheme http or https, and
// perhaps a path that goes before every path. An error is one of the target or
// of a rule.
func NewProxy(target *url.URL, opts *ProxyOptions) (*Proxy, error) {
	if target == nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, fmt.Errorf("fault: the target %v is not an http or https URL", target)
	}
	p := &Proxy{Injector: newInjector(httpForm, nil), target: target}
	if opts != nil {
		p.opts = *opts
	}
	if err := p.SetRules(p.opts.Rules...); err != nil {
		return nil, err
	}
	if p.opts.ErrorLog == nil {
		p.opts.ErrorLog = log.New(io.Discard, "", 0)
	}
	p.wire = &wire{base: p.opts.Transport}
	if p.wire.base == nil {
		p.torn = p.transport(false)
		p.wire = &wire{base: single(func() *http.Transport { return p.transport(true) }), torn: p.torn, once: true}
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:       p.rewrite,
		Transport:     ridden{},
		FlushInterval: -1,
		ErrorHandler:  failed,
		ErrorLog:      p.opts.ErrorLog,
	}
	return p, nil
}

// single gives each request a transport, and with it a connection, of its own:
// a stale connection is what makes http.Transport send again by itself.
type single func() *http.Transport

func (s single) RoundTrip(req *http.Request) (*http.Response, error) { return s().RoundTrip(req) }

func (p *Proxy) transport(once bool) *http.Transport {
	t := &http.Transport{
		DisableKeepAlives: once, IdleConnTimeout: 10 * time.Second, DisableCompression: true,
		TLSClientConfig: p.opts.UpstreamTLS.Clone(), Protocols: new(http.Protocols),
	}
	if p.opts.H2C && p.target.Scheme == "http" {
		t.Protocols.SetUnencryptedHTTP2(true)
		return t
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	return t
}

// rewrite points a request at the target, and undoes what ReverseProxy does
// for safety: this proxy is there to be invisible.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	pr.SetURL(p.target)
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	if p.target.RawQuery != "" {
		pr.Out.URL.RawQuery = p.target.RawQuery + "&" + pr.In.URL.RawQuery
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := pr.In.Header[name]; ok {
			pr.Out.Header[name] = v
		}
	}
	if p.opts.PreserveHost {
		pr.Out.Host = pr.In.Host
	}
}

type rideKey struct{}

// ride is one request through a Proxy.
type ride struct {
	x *exchange
	r *http.Request // as the client sent it
}

// ridden is the RoundTripper behind ReverseProxy: the request's own exchange.
type ridden struct{}

func (ridden) RoundTrip(out *http.Request) (*http.Response, error) {
	return out.Context().Value(rideKey{}).(*ride).x.run(out)
}

// ServeHTTP carries r to the target, as the rules have it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reused, known := reused(r)
	if !known && p.has(ReplayOldConnection) {
		http.Error(w, "fault: replay-old-connection needs http.Server.ConnContext = fault.ConnContext", http.StatusInternalServerError)
		return
	}
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.wg.Done()
	x, err := p.begin(r, p.wire, onConnection(reused))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer x.done()
	if x.rule != nil && x.rule.Fault == CutAfter {
		w = &headerFlusher{ResponseWriter: w}
	}
	ctx := context.WithValue(r.Context(), rideKey{}, &ride{x, r})
	p.reverse.ServeHTTP(w, r.WithContext(ctx))
}

// failed ends a request to which there is no answer.
func failed(w http.ResponseWriter, out *http.Request, err error) {
	trip := out.Context().Value(rideKey{}).(*ride)
	var cut *Error
	if errors.As(err, &cut) || errors.Is(err, ErrClosed) || trip.r.Context().Err() != nil {
		fail(w, trip.r, err)
		return
	}
	trip.x.edit(func(e *Entry) { e.Status = http.StatusBadGateway })
	http.Error(w, "fault: the upstream failed: "+err.Error(), http.StatusBadGateway)
}

// headerFlusher sends the header at once, so that it has arrived when the
// body is cut before its first byte.
type headerFlusher struct{ http.ResponseWriter }

func (f *headerFlusher) WriteHeader(code int) {
	f.ResponseWriter.WriteHeader(code)
	http.NewResponseController(f.ResponseWriter).Flush()
}

func (f *headerFlusher) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// Serve accepts clients on ln until Close, and returns nil then. It closes ln.
func (p *Proxy) Serve(ln net.Listener) error {
	srv := &http.Server{
		Handler:     http.HandlerFunc(p.front),
		ConnContext: ConnContext,
		Protocols:   new(http.Protocols),
		ErrorLog:    p.opts.ErrorLog,
	}
	srv.Protocols.SetHTTP1(true)
	// HTTP/2 over TLS comes this way too, because the TLS is below frameConn.
	srv.Protocols.SetUnencryptedHTTP2(true)
	p.servers.Lock()
	p.running = append(p.running, srv)
	p.servers.Unlock()
	if !p.enter() {
		ln.Close()
		return nil
	}
	defer p.wg.Done()
	err := srv.Serve(&frameListener{Listener: ln, tls: serverTLS(p.opts.TLS)})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Listen serves on addr in the background, and returns the proxy's URL, whose
// host is that of addr. A port of 0 is any free one.
func (p *Proxy) Listen(addr string) (string, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("fault: %w", err)
	}
	if !p.start(func() { p.Serve(ln) }) {
		ln.Close()
		return "", ErrClosed
	}
	scheme := "http"
	if p.opts.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + ln.Addr().String(), nil
}

// front takes what frameConn has added out of the request.
func (p *Proxy) front(w http.ResponseWriter, r *http.Request) {
	stream := takeStream(r.Header)
	r = r.WithContext(context.WithValue(r.Context(), streamKey{}, stream))
	if c, ok := r.Context().Value(connKey{}).(*clientConn); ok && c.frames != nil {
		if secure, ok := c.frames.Conn.(*tls.Conn); ok {
			state := secure.ConnectionState()
			r.TLS = &state
		}
	}
	p.ServeHTTP(w, r)
}

// Close stops accepting, ends what is held or delayed, cuts the clients,
// cancels what still runs at the target, and waits for all of it.
func (p *Proxy) Close() error {
	p.shut()
	p.servers.Lock()
	running := p.running
	p.servers.Unlock()
	var errs []error
	for _, srv := range running {
		errs = append(errs, srv.Close())
	}
	p.wg.Wait()
	if p.torn != nil {
		p.torn.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// frameListener puts TLS and a frameConn on top of each connection.
type frameListener struct {
	net.Listener
	tls *tls.Config
}

func (l *frameListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.tls != nil {
		c = tls.Server(c, l.tls) // shakes hands when it is first read
	}
	return newFrameConn(c), nil
}

// serverTLS offers HTTP/2 and HTTP/1.1 where the caller has not chosen.
func serverTLS(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c = c.Clone()
	if len(c.NextProtos) == 0 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	return c
}
