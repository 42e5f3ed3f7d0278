package httpapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
)

// MaxWait is the longest wait that a client may ask for with Prefer.
const MaxWait = 60 * time.Second

// Options configure a [Server].
type Options struct {
	// Authenticate says who asks, for every request. An [semel.Error] is told as it
	// is, every other error as [semel.CodeUnauthenticated] without its text. It must
	// be safe for concurrent use. Defaults to Tokens.Authenticate, or to refusing
	// everybody where there are no Tokens.
	Authenticate func(*http.Request) (Identity, error)
	// Tokens are the bearer tokens, and make sign-in by cookie possible. Defaults to
	// none: then /v1/session takes nobody in.
	Tokens *Tokens
	// SessionKey signs the cookies; at least 32 random bytes, the same ones on
	// every node. Defaults to random ones: then a restart signs every page out.
	SessionKey []byte
	// SessionTTL is how long a sign-in lasts. Defaults to 12 hours.
	SessionTTL time.Duration
	// SecureCookies says that pages reach this server over https although its own
	// connections are not TLS, because a proxy is in front. Defaults to what each
	// connection is.
	SecureCookies bool
	// CORS lists the origins ("https://app.example") whose pages may call with a
	// bearer token. Defaults to none.
	CORS []string
	// BasePath is put before Location, where the server is mounted under a prefix
	// such as "/semel". Defaults to nothing.
	BasePath string
	// MaxBody is the limit of a request's body in bytes. Defaults to 1 MiB.
	MaxBody int64
	// Heartbeat is how often a quiet event stream says that it is alive. Defaults to
	// 15 seconds.
	Heartbeat time.Duration
	// Metrics answers /metrics, for everybody who can reach it. Defaults to nothing:
	// then there is no such route.
	Metrics http.Handler
	// Logger gets one record per request. Defaults to slog.Default.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.Authenticate == nil && o.Tokens != nil {
		o.Authenticate = o.Tokens.Authenticate
	}
	if o.Authenticate == nil {
		o.Authenticate = func(*http.Request) (Identity, error) { return Identity{}, semel.ErrUnauthenticated }
	}
	if len(o.SessionKey) == 0 {
		o.SessionKey = make([]byte, 32)
		rand.Read(o.SessionKey)
	}
	if o.SessionTTL <= 0 {
		o.SessionTTL = 12 * time.Hour
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 1 << 20
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// A Server answers HTTP requests from a ledger. It is safe for concurrent use.
type Server struct {
	ledger   *semel.Ledger
	opts     Options
	routes   []route
	draining context.Context
	drain    context.CancelFunc
}

// New makes a server on a ledger. It starts nothing and needs no closing.
func New(ledger *semel.Ledger, options *Options) *Server {
	s := &Server{ledger: ledger}
	if options != nil {
		s.opts = *options
	}
	s.opts.setDefaults()
	s.routes = s.table()
	s.draining, s.drain = context.WithCancel(context.Background())
	return s
}

// Drain ends event streams and waiting answers, so that a graceful shutdown does
// not have to wait for them, and makes /readyz say 503. Clients come back and
// carry on, at another node or after the restart. [NewHTTPServer] calls it on
// Shutdown.
func (s *Server) Drain() { s.drain() }

// NewHTTPServer makes an [http.Server] whose time-outs bound slow clients: headers
// within 10 seconds and 64 KiB, bodies within a minute, answers within two, idle
// connections for two. They do not cut waiting answers or event streams, which
// bound every single write instead. If the handler has a method Drain, as
// [Server] has, Shutdown calls it.
func NewHTTPServer(addr string, handler http.Handler) *http.Server {
	srv := &http.Server{
		Addr: addr, Handler: handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	if d, ok := handler.(interface{ Drain() }); ok {
		srv.RegisterOnShutdown(d.Drain)
	}
	return srv
}

// until returns a context that ends with the request, or when the server drains.
func (s *Server) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() { stop(); cancel() }
}

// secure reports whether the client's end of the connection is https.
func (s *Server) secure(r *http.Request) bool { return s.opts.SecureCookies || r.TLS != nil }
