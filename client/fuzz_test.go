package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
)

const fuzzID = "0197c8f2-5f0a-7cc1-8d8e-000000000001"

// Whatever comes as an answer, problem+json or not: it is believed only where it is
// about this operation, and a refusal only where it says that nothing was recorded;
// after an unknown transmission nothing but an answer for the key counts.
func FuzzAnswer(f *testing.F) {
	op := `{"key":{"account":"acme","kind":"export","id":"` + fuzzID + `"},"state":"accepted","revision":1,"params":{"a":1}}`
	f.Add(201, "application/json", "", []byte(op))
	f.Add(200, "application/json", "1", []byte(`<html>sign in to the hotel's network</html>`))
	f.Add(200, "application/json", "", []byte(strings.Replace(op, fuzzID, "another", 1)))
	for _, code := range semel.Codes() {
		p := problem.Of(&semel.Error{Code: code, Msg: "x"})
		f.Add(p.Status, problem.MediaType, "2", p.Marshal())
		p.Operation = operationIn(Intent{Kind: "export", ID: fuzzID}, []byte(op))
		f.Add(p.Status, problem.MediaType, "2", p.Marshal())
	}
	f.Add(400, problem.MediaType, "", []byte(`{"code":"invalid-operation","recorded":"unknown"}`))
	f.Add(409, "application/problem+json; charset=utf-8", "", []byte(`{"code":"operation-abandoned","recorded":"no","operation":`+op+`}`))
	semelContract := preset(contract.Semel)
	in := Intent{ID: fuzzID, Kind: "export", Method: http.MethodPut, Key: fuzzID}
	request := contract.Request{Method: http.MethodPut, Keyed: true, Replayable: true}
	wire := contract.Wire{Going: contract.Begun, Sends: 1, Arrival: contract.ArrivedComplete}
	f.Fuzz(func(t *testing.T, status int, media, after string, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		answer := &contract.Answer{Status: status, Header: http.Header{"Content-Type": {media}, "Retry-After": {after}}, Body: body}
		p, isProblem := problem.Decode(status, answer.Header, body)
		sent := judge(in, semelContract.Classify(request, wire, answer), answer, "")
		now := time.Now()
		for _, before := range []contract.Evidence{{}, contract.Fold(contract.NoReport())} {
			r := newRecord(in, &API{Name: "semel"}, now)
			r.Evidence = before
			r.mark(now, time.Second)
			s := sent
			r.takeSent(&s, now)
			outcome := r.Evidence.Outcome()
			if r.Operation != nil && (outcome != contract.OutcomeApplied || !ours(in, r.Operation) || r.Operation.Params != nil || !bytes.Contains(body, []byte(`id`))) {
				t.Errorf("operation %+v, outcome %s", r.Operation, outcome)
			}
			if outcome == contract.OutcomeApplied && r.Operation == nil {
				t.Error("it is said to be recorded, and there is no operation")
			}
			refused := outcome == contract.OutcomeRefused
			if refused && (!isProblem || p.Recorded != semel.RecordedNo && p.Code != semel.CodeExpired && p.Code != semel.CodeMismatch) {
				t.Errorf("%d %s refuses it: %+v", status, media, r.Evidence.Last)
			}
			if before.Open > 0 && outcome != contract.OutcomeUnknown && outcome != contract.OutcomeApplied {
				switch p.Code {
				case semel.CodeMismatch, semel.CodeAbandoned, semel.CodeDeadlinePassed: // said after the key was looked up
				default:
					t.Errorf("after a doubt, %d %q makes it %s", status, p.Code, outcome)
				}
			}
			state, err := r.encode()
			if err != nil {
				t.Fatal(err)
			}
			again, err := decodeRecord(r.ID, state)
			if err != nil {
				t.Fatal(err)
			}
			if twice, err := again.encode(); err != nil || !bytes.Equal(state, twice) {
				t.Errorf("a record changes by being read:\n%s\n%s", state, twice)
			}
			decide(r, &semelContract, &view{now: now, request: request, canLookUp: true, canAbandon: true, canFollow: true})
		}
		seen := read(in, status, answer.Header, body)
		if seen.Found == contract.FoundNothing && (p.Code != semel.CodeNotFound || status != 404) {
			t.Errorf("%d %q is taken for \"not found\"", status, p.Code)
		}
		if seen.operation != nil && (status != 200 || !ours(in, seen.operation)) {
			t.Errorf("a look-up believes %+v", seen.operation)
		}
	})
}

// Events are the same, however the stream is cut into pieces.
func FuzzEvents(f *testing.F) {
	f.Add("retry: 1000\n\nevent: state\nid: 3\ndata: {\"a\":1}\n\n: alive\n\nevent: progress\ndata: x\ndata: y\n\n", 64)
	f.Add("data: a\r\rdata\r\ndata:  b\r\n\r\n", 3)
	f.Add("event:state\ndata:half", 1024)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<16 || len(text) > 1<<12 {
			return
		}
		all := func(r interface{ Read([]byte) (int, error) }) (list []string) {
			readEvents(r, int64(limit), func(name string, data []byte) bool {
				if len(data) > limit+len(text) {
					t.Error("an event is too long")
				}
				list = append(list, fmt.Sprintf("%s %q", name, data))
				return true
			})
			return list
		}
		whole, pieces := all(strings.NewReader(text)), all(iotest.OneByteReader(strings.NewReader(text)))
		if fmt.Sprint(whole) != fmt.Sprint(pieces) {
			t.Errorf("%q\nin one piece: %q\nin many:     %q", text, whole, pieces)
		}
	})
}

// A record that is no record is an error, and nothing else.
func FuzzRecord(f *testing.F) {
	r := newRecord(Intent{ID: "x", Kind: "export", Body: []byte("b")}, &API{Name: "semel"}, time.Now())
	state, _ := r.encode()
	f.Add(state)
	f.Add([]byte(`{"v":1,"id":"x","ended":"settled"}`))
	f.Add([]byte(`{"v":2,"id":"x"}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		r, err := decodeRecord("x", state)
		if err != nil {
			return
		}
		r.entry()
		c := preset(contract.Semel)
		decide(r, &c, &view{now: time.Now()})
	})
}

func TestAnswersOfTheHotel(t *testing.T) {
	in := Intent{ID: fuzzID, Kind: "export", Method: http.MethodPut, Key: fuzzID}
	rec := httptest.NewRecorder()
	json.NewEncoder(rec).Encode(map[string]string{"hello": "guest"})
	proof := contract.Proof{Proves: contract.Applied, Reach: contract.ReachKey, Status: 200}
	sent := judge(in, proof, &contract.Answer{Status: 200, Header: rec.Header(), Body: rec.Body.Bytes()}, "")
	if sent.Proof.Proves != contract.Unknown || sent.operation != nil {
		t.Errorf("a stranger is believed: %+v", sent)
	}
}
