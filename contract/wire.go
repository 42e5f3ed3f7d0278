package contract

import "net/http"

// Request is what must be known of a request in order to judge its transmissions.
type Request struct {
	// Method is the HTTP method.
	Method string `json:"method,omitempty"`
	// Keyed says that the request carries a key, in the place which the contract names, the same on every repeat.
	Keyed bool `json:"keyed,omitempty"`
	// Replayable says that the same bytes can be sent again: there is no body, or it can be rebuilt.
	Replayable bool `json:"replayable,omitempty"`
}

// Wire is what was seen of one transmission on the wire. The zero Wire means "nothing is known", and therefore that
// the request may have arrived.
type Wire struct {
	// Going says whether bytes of the request began to go out.
	Going Going `json:"going,omitempty"`
	// Sends counts how often the request began to go out within this one call, hidden re-sends of the transport
	// included. Zero is taken as one: the caller vouches that its transport sends once for each call. Above one, an
	// answer proves nothing about the earlier sends, unless it speaks for the key.
	Sends int `json:"sends,omitempty"`
	// Failure says how the transmission failed. Empty means that it did not.
	Failure Failure `json:"failure,omitempty"`
	// Arrival says how much of an answer arrived.
	Arrival Arrival `json:"arrival,omitempty"`
}

// Going says whether bytes of a request began to go out.
type Going string

// Whether bytes of a request began to go out. The empty value means that nobody knows, and counts as [Begun].
const (
	NotBegun Going = "not_begun" // certainly not, or nothing that the server could have read
	Begun    Going = "begun"     // they did, or may have
)

// Failure is the way in which a transmission failed.
type Failure string

// The ways in which a transmission fails.
const (
	FailedDial      Failure = "dial"           // the connection was refused, or the host was not reached
	FailedDNS       Failure = "dns"            // the name was not resolved
	FailedTLS       Failure = "tls"            // the TLS handshake failed, on either side
	FailedNoConn    Failure = "no_connection"  // no connection was got (a full pool, a proxy that would not connect)
	FailedRefused   Failure = "refused_stream" // HTTP/2 REFUSED_STREAM: the server says that it did not look at it
	FailedGoAway    Failure = "goaway"         // HTTP/2 GOAWAY whose last stream ID is below ours
	FailedUnwritten Failure = "unwritten"      // the connection was gone before the first byte went out
	FailedTimeout   Failure = "timeout"        // a deadline passed
	FailedReset     Failure = "reset"          // the connection or the stream was reset
	FailedEOF       Failure = "eof"            // the connection ended where an answer was due
	FailedCancelled Failure = "cancelled"      // the caller gave up
	FailedMalformed Failure = "malformed"      // what arrived was no HTTP answer
	FailedOtherwise Failure = "other"          // anything else
)

// Arrival says how much of an answer arrived.
type Arrival string

// How much of an answer arrived. The empty value means none.
const (
	ArrivedNothing  Arrival = ""
	ArrivedCut      Arrival = "cut"      // it broke off before its end
	ArrivedLimited  Arrival = "limited"  // we stopped reading on purpose (too large to keep, a stream); nothing broke
	ArrivedComplete Arrival = "complete" // all of it
)

// Answer is an answer as it arrived.
type Answer struct {
	// Status is the status code.
	Status int
	// Header holds the answer's headers. Keys are in canonical form, as net/http makes them.
	Header http.Header
	// Body is the body, or as much of it as was kept. It is read only where the contract needs a machine code. A
	// body that is no JSON, or was cut, has no code.
	Body []byte
}
