package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// ProcessOptions are the options of [RunProxy]: what a command line can say.
type ProcessOptions struct {
	// Listen is the address for clients. Defaults to a free port of 127.0.0.1.
	Listen string
	// Control is the address of the HTTP control. Defaults to a free port of
	// 127.0.0.1.
	Control string
	// Rules are the first rules, in the rule language. Defaults to none.
	Rules []string
	// CertFile and KeyFile, in PEM, are for clients that speak TLS. Defaults to
	// no TLS.
	CertFile, KeyFile string
	// CAFile holds, in PEM, the authorities that the upstream's certificate is
	// checked against. Defaults to the system's.
	CAFile string
	// Insecure does not check the upstream's certificate. Defaults to false.
	Insecure bool
	// H2C speaks HTTP/2 without TLS to an http upstream. Defaults to HTTP/1.1.
	H2C bool
	// PreserveHost sends the client's Host to the upstream. Defaults to false.
	PreserveHost bool
	// Out gets two lines when both addresses accept connections:
	// "proxy: URL" and "control: URL". Defaults to os.Stdout.
	Out io.Writer
}

// RunProxy is the whole proxy process: it forwards to the URL to, until ctx
// ends, and returns nil then. http and https are forwarded by a [Proxy],
// tcp://host:port by a [TCPProxy]. An error is one of the options or of
// listening; wrong rules are a [*ParseError].
func RunProxy(ctx context.Context, to string, opts *ProcessOptions) error {
	var o ProcessOptions
	if opts != nil {
		o = *opts
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Control == "" {
		o.Control = "127.0.0.1:0"
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	rules, err := ParseRules(strings.Join(o.Rules, "\n"))
	if err != nil {
		return err
	}
	target, err := url.Parse(to)
	if err != nil {
		return fmt.Errorf("fault: the upstream is not a URL: %w", err)
	}
	front, err := openFront(target, rules, &o)
	if err != nil {
		return err
	}
	defer front.close()
	ln, err := net.Listen("tcp", o.Control)
	if err != nil {
		return fmt.Errorf("fault: the control cannot listen: %w", err)
	}
	// Slow clients are the business of the proxy, not of its control.
	control := &http.Server{Handler: front.control, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { control.Close() })
	defer stop()
	if _, err := fmt.Fprintf(o.Out, "proxy: %s\ncontrol: http://%s\n", front.url, ln.Addr()); err != nil {
		ln.Close()
		return err
	}
	if err := control.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// front is the side of a proxy process that clients see.
type front struct {
	url     string
	control http.Handler
	close   func() error
}

func openFront(target *url.URL, rules []Rule, o *ProcessOptions) (*front, error) {
	if target.Scheme == "tcp" {
		p, err := NewTCPProxy(target.Host, &TCPOptions{Listen: o.Listen, Rules: rules})
		if err != nil {
			return nil, err
		}
		return &front{url: "tcp://" + p.Addr(), control: p.Control(), close: p.Close}, nil
	}
	po := &ProxyOptions{Rules: rules, H2C: o.H2C, PreserveHost: o.PreserveHost}
	var err error
	if po.UpstreamTLS, err = upstreamTLS(o); err != nil {
		return nil, err
	}
	if o.CertFile != "" || o.KeyFile != "" {
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
		po.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	p, err := NewProxy(target, po)
	if err != nil {
		return nil, err
	}
	addr, err := p.Listen(o.Listen)
	if err != nil {
		p.Close()
		return nil, err
	}
	return &front{url: addr, control: p.Control(), close: p.Close}, nil
}

func upstreamTLS(o *ProcessOptions) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: o.Insecure}
	if o.CAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("fault: %s holds no certificate", o.CAFile)
	}
	return c, nil
}
