package contract

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
)

// WireFrom turns the error of an HTTP call into the facts of its transmission. err is what [net/http.Client.Do] or a
// transport returned, or what reading the answer's body returned; nil where nothing failed. The caller sets
// [Wire.Arrival] itself, since only it knows how much of an answer it read.
//
// It errs on one side only. That nothing was sent is concluded only where a tracer watched, and either no connection
// was handed over, or the server said in HTTP/2's own words that it did not look at the one stream that was sent.
// Without a tracer (zero facts) hidden re-sends cannot be ruled out, and an error proves nothing. A transport that does
// not report to httptrace is believed only where the error itself comes from before the connection.
func WireFrom(err error, t TraceFacts) Wire {
	w := Wire{Going: Begun, Sends: t.Got, Failure: failureOf(err, t)}
	switch {
	case !t.Traced:
	case t.Got == 0 && t.Asked > 0:
		w.Going = NotBegun
		if w.Failure == FailedOtherwise || w.Failure == "" && err != nil {
			w.Failure = FailedNoConn
		}
	case t.Got == 0 && w.Failure.beforeConnection():
		w.Going = NotBegun
	case t.Got == 1 && (w.Failure == FailedUnwritten || w.Failure == FailedTLS):
		w.Going = NotBegun
	}
	if err == nil && w.Going == NotBegun {
		w.Going = Begun // an answer from somewhere else than the network: a cache, a test
	}
	return w
}

// failureOf names the way in which a call failed.
func failureOf(err error, t TraceFacts) Failure {
	if err == nil {
		return ""
	}
	if t.Got > 0 && !t.FirstByte {
		if f := notLookedAt(err, t); f != "" {
			return f
		}
	}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return FailedCancelled
	case errors.As(err, &dns):
		return FailedDNS
	case tlsFailed(err, t):
		return FailedTLS
	case timedOut(err):
		return FailedTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return FailedDial
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return FailedNoConn
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), t.Got > 0 && streamReset(err):
		return FailedReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), saysAny(err, "http: server closed idle connection"), wentAway(err):
		return FailedEOF
	case malformed(err):
		return FailedMalformed
	}
	return FailedOtherwise
}

// notLookedAt names the failure by which a server, or a connection, says that it never looked at a request for which a
// connection was there; "" where it does not say so. It is asked only before the first byte of an answer.
func notLookedAt(err error, t TraceFacts) Failure {
	switch {
	case t.NothingWritten && t.Got == 1, matches(err, unusableText):
		return FailedUnwritten
	case refusedStream(err):
		return FailedRefused
	case matches(err, goAwayText):
		return FailedGoAway
	}
	return ""
}

func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// tlsFailed reports whether the handshake failed. Before a connection is handed over any TLS error is one. Afterwards
// only a fresh connection counts, on which the server turned down our certificate: in TLS 1.3 its word arrives when the
// client is done already, and it never read the request.
func tlsFailed(err error, t TraceFacts) bool {
	var (
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		op      *net.OpError
	)
	alert := errors.As(err, &op) && op.Op == "remote error"
	if t.Got > 0 {
		return alert && t.Got == 1 && !t.Reused && certificateAlerts[op.Err.Error()]
	}
	return alert || errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &unknown) ||
		errors.As(err, &host) || errors.As(err, &invalid) || saysAny(err, "net/http: TLS handshake timeout", "http: server gave HTTP response to HTTPS client") ||
		innermost(err, func(e error) bool { return strings.HasPrefix(e.Error(), "tls: ") })
}

// certificateAlerts are the alerts by which a server turns down a client's certificate; they end a handshake.
var certificateAlerts = map[string]bool{
	"tls: bad certificate":               true,
	"tls: unsupported certificate":       true,
	"tls: revoked certificate":           true,
	"tls: expired certificate":           true,
	"tls: unknown certificate":           true,
	"tls: unknown certificate authority": true,
	"tls: access denied":                 true,
	"tls: certificate required":          true,
}

// streamError has the fields of HTTP/2's stream error. The one inside net/http converts itself to any struct of this
// shape; that is its documented way to be told apart without importing golang.org/x/net.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "HTTP/2 stream error" }

// codeRefusedStream is HTTP/2's REFUSED_STREAM (RFC 9113, section 7).
const codeRefusedStream = 0x7

// What cannot be told by its type is told by its whole text, never by a part of it: a part might be the server's own
// words (GOAWAY has room for some).
var (
	refusedText = regexp.MustCompile(`^(?:` + cannotRetry(`stream error: stream ID \d+; REFUSED_STREAM(?:; .{0,40})?`) + `)$`)
	// A GOAWAY ended our stream because its last stream ID is below ours. A connection that broke off after a GOAWAY
	// which did cover our stream has other words, and proves nothing.
	goAwayText = regexp.MustCompile(`^(?:` + cannotRetry(`http2: Transport received Server's graceful shutdown GOAWAY`) +
		`|http2: Transport received GOAWAY from server ErrCode:[A-Z_]+)$`)
	// The HTTP/2 connection was dead before our stream was opened on it.
	unusableText = regexp.MustCompile(`^(?:` + cannotRetry(`http2: client conn not usable`) +
		`|http2: client conn could not be established)$`)
	streamText = regexp.MustCompile(`^(?:` + cannotRetry(`stream error: stream ID \d+; .*`) + `)$`)
)

// cannotRetry is the pattern of an error, alone or in the words by which the HTTP/2 transport says that it would have
// sent the request again, had it been able to rewind the body.
func cannotRetry(pattern string) string {
	return pattern + `|http2: Transport: cannot retry err \[` + pattern + `\] after Request\.Body was written; define Request\.GetBody to avoid this error`
}

func refusedStream(err error) bool {
	var s streamError
	if errors.As(err, &s) {
		return s.Code == codeRefusedStream
	}
	return matches(err, refusedText)
}

func streamReset(err error) bool {
	var s streamError
	return errors.As(err, &s) || matches(err, streamText)
}

// wentAway reports whether the connection ended after a GOAWAY that covered our stream.
func wentAway(err error) bool {
	return innermost(err, func(e error) bool {
		return strings.HasPrefix(e.Error(), "http2: server sent GOAWAY and closed the connection;")
	})
}

func malformed(err error) bool {
	return innermost(err, func(e error) bool {
		return strings.HasPrefix(e.Error(), "malformed HTTP ") || strings.HasPrefix(e.Error(), "net/http: HTTP/1.x transport connection broken: malformed ")
	})
}

func matches(err error, re *regexp.Regexp) bool {
	return innermost(err, func(e error) bool { return re.MatchString(e.Error()) })
}

func saysAny(err error, texts ...string) bool {
	return innermost(err, func(e error) bool {
		for _, text := range texts {
			if e.Error() == text {
				return true
			}
		}
		return false
	})
}

// innermost reports whether is holds for err or any error that it wraps.
func innermost(err error, is func(error) bool) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if is(err) {
			return true
		}
	}
	return false
}
