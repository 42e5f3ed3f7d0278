package contract_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

// Every way to write a contract wrongly, with the field that the error must name.
func TestValidateNamesTheField(t *testing.T) {
	tests := []struct{ json, field string }{
		{`{"carrier":{"in":"cookie","name":"k"}}`, "carrier.in"},
		{`{"carrier":{"name":"Idempotency-Key"}}`, "carrier.in"},
		{`{"carrier":{"in":"header"}}`, "carrier.name"},
		{`{"carrier":{"in":"header","name":"Idempotency Key"}}`, "carrier.name"},
		{`{"carrier":{"in":"body","name":"idempotency_key"}}`, "carrier.name"},
		{`{"carrier":{"in":"body","name":"<Key>"}}`, "carrier.name"},
		{`{"carrier":{"or":[{"in":"query","name":"k"}]}}`, "carrier.in"},
		{`{"carrier":{"in":"query","name":"k","or":[{"name":"k"}]}}`, "carrier.or[0].in"},
		{`{"carrier":{"in":"query","name":"k","first_sent":"Date-Sent"}}`, "carrier.first_sent"},
		{`{"carrier":{"in":"header","name":"k","first_sent":"Date Sent"}}`, "carrier.first_sent"},
		{`{"key":{"form":"ulid"}}`, "key.form"},
		{`{"key":{"charset":"emoji"}}`, "key.charset"},
		{`{"key":{"unit":"words"}}`, "key.unit"},
		{`{"key":{"quoting":"maybe"}}`, "key.quoting"},
		{`{"key":{"min_length":9,"max_length":8}}`, "key.max_length"},
		{`{"key":{"min_length":-1}}`, "key.max_length"},
		{`{"key":{"uuid_version":4}}`, "key.uuid_version"},
		{`{"carrier":{"in":"query","name":"k"},"key":{"max_length":10}}`, "key"},
		{`{"carrier":{"in":"query","name":"k"},"key":{"form":"uuid","uuid_version":7}}`, "key"},
		{`{"use":{"methods":["post"]}}`, "use.methods[0]"},
		{`{"use":{"repeatable":["PUT",""]}}`, "use.repeatable[1]"},
		{`{"use":{"required":"yes"}}`, "use.required"},
		{`{"use":{"elsewhere":"no"}}`, "use.elsewhere"},
		{`{"use":{"missing":7}}`, "use.missing"},
		{`{"scope":{"within":["account","planet"]}}`, "scope.within[1]"},
		{`{"retention":{"minimum":"-1h"}}`, "retention.minimum"},
		{`{"retention":{"minimum":"2h","hard_end":"1h"}}`, "retention.hard_end"},
		{`{"retention":{"from":"birth"}}`, "retention.from"},
		{`{"retention":{"after":"nothing"}}`, "retention.after"},
		{`{"retention":{"minimum":"2h","after":"kept_for_ever"}}`, "retention.after"},
		{`{"retention":{"minimum":"2h","after":"runs_again","refusal":410}}`, "retention.refusal"},
		{`{"compare":{"what":["soul"]}}`, "compare.what[0]"},
		{`{"compare":{"what":["nothing","query"]}}`, "compare.what[0]"},
		{`{"compare":{"what":["paths"]}}`, "compare.paths"},
		{`{"compare":{"paths":["/a"]}}`, "compare.paths"},
		{`{"compare":{"what":["paths"],"paths":["a"]}}`, "compare.paths[0]"},
		{`{"mismatch":{"do":"ignored"}}`, "mismatch.do"},
		{`{"mismatch":{"do":"replayed","answer":422}}`, "mismatch.answer"},
		{`{"mismatch":{"do":"refused","answer":{"status":422,"code":"x"}}}`, "mismatch.answer"},
		{`{"in_progress":{"do":"crashes"}}`, "in_progress.do"},
		{`{"in_progress":{"do":"waits","answer":409}}`, "in_progress.answer"},
		{`{"in_progress":{"after_crash":"burns"}}`, "in_progress.after_crash"},
		{`{"in_progress":{"ask_again_after":"-1s"}}`, "in_progress.ask_again_after"},
		{`{"replay":{"form":"song"}}`, "replay.form"},
		{`{"replay":{"marker":{"header":"a b"}}}`, "replay.marker.header"},
		{`{"stored":{"outcomes":"some"}}`, "stored.outcomes"},
		{`{"stored":{"outcomes":"all_but_transient"}}`, "stored.transient"},
		{`{"stored":{"server_errors":"eaten"}}`, "stored.server_errors"},
		{`{"stored":{"transient":{"header":"ä"}}}`, "stored.transient.header"},
		{`{"answers":{"code_at":["code"]}}`, "answers.code_at[0]"},
		{`{"answers":{"code_in_2xx":true}}`, "answers.code_at"},
		{`{"answers":{"again":{"header":"("}}}`, "answers.again.header"},
		{`{"answers":{"refused":[400,{}]}}`, "answers.refused[1]"},
		{`{"answers":{"refused":[500]}}`, "answers.refused[0]"},
		{`{"answers":{"refused":[199]}}`, "answers.refused[0]"},
		{`{"answers":{"nothing_happened":[429,503]}}`, "answers.nothing_happened[1]"},
		{`{"answers":{"refused":[400],"nothing_happened":[400]}}`, "answers.refused[0]"},
		{`{"answers":{"refused":[200]}}`, "answers.refused[0]"},
		{`{"answers":{"refused":[{"status":400,"header":"a b"}]}}`, "answers.refused[0].header"},
		{`{"answers":{"code_at":["/c"],"refused":[{"code":"x","at":"y"}]}}`, "answers.refused[0].at"},
		{`{"mismatch":{"do":"refused","answer":409},"in_progress":{"do":"refused","answer":409}}`, "in_progress.answer"},
		{`{"look_up":{"by":"luck"}}`, "look_up.by"},
		{`{"look_up":{"absent_after":"1m"}}`, "look_up.by"},
		{`{"look_up":{"by":"key","absent_after":"1m","consistent_after":"2m"}}`, "look_up.absent_after"},
		{`{"look_up":{"by":"key","consistent_after":"-2m"}}`, "look_up.consistent_after"},
		{`{"cancel":{"leaves":"ash"}}`, "cancel.leaves"},
		{`{"successor":{"rule":"always"}}`, "successor.rule"},
		{`{"preset":"stripe"}`, "preset"},
		{`{"preset":7}`, "preset"},
	}
	for _, tt := range tests {
		_, err := contract.Parse([]byte(tt.json))
		var fields []string
		for _, e := range unjoin(err) {
			var f *contract.FieldError
			if !errors.As(e, &f) {
				t.Errorf("%s: %v is no FieldError", tt.json, e)
				continue
			}
			if f.Problem == "" || f.Fix == "" || !strings.HasPrefix(f.Error(), f.Field+": ") {
				t.Errorf("%s: an error without problem or fix: %v", tt.json, f)
			}
			fields = append(fields, f.Field)
		}
		if len(fields) != 1 || fields[0] != tt.field {
			t.Errorf("%s: errors for %q, want one for %q", tt.json, fields, tt.field)
		}
	}
}

func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func TestEveryProblemIsTold(t *testing.T) {
	_, err := contract.Parse([]byte(`{"key":{"form":"x"},"retention":{"from":"y"},"replay":{"form":"z"}}`))
	if n := len(unjoin(err)); n != 3 {
		t.Errorf("%d problems, want 3: %v", n, err)
	}
}

func TestParse(t *testing.T) {
	stripe := preset(t, contract.StripeV1)
	if c, err := contract.Parse([]byte(`"stripe-v1"`)); err != nil || !reflect.DeepEqual(c, stripe) {
		t.Errorf("the name of a preset: %v", err)
	}
	if _, err := contract.Parse([]byte(`"stripe"`)); err == nil {
		t.Error("the name of no preset is read")
	}

	c, err := contract.Parse([]byte(`{"preset":"stripe-v1","name":"ours","retention":{"minimum":"30d"},"answers":{"refused":[418],"again":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := stripe
	want.Name = "ours"
	want.Retention.Minimum = contract.Duration(30 * 24 * time.Hour)
	want.Answers.Refused = []contract.Match{{Status: 418}}
	want.Answers.Again = contract.AgainSign{}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("laid over a preset:\n%+v\nwant\n%+v", c, want)
	}
	if c, err = contract.Parse([]byte(`{"preset":"ietf"}`)); err != nil || c.Name != contract.IETF {
		t.Errorf("a preset as it is: %q, %v", c.Name, err)
	}

	for text, problem := range map[string]string{
		`{"retention":{"minimum":24}}`:            "minimum",
		`{"retention":{"minimum":"24"}}`:          "90s, 24h, 30d",
		`{"retentoin":{}}`:                        "retentoin",
		`{"answers":{"refused":["400"]}}`:         "status (409)",
		`{"answers":{"refused":[{"staus":400}]}}`: "staus",
		`{} {}`:                         "follows",
		`[]`:                            "an object",
		``:                              "an object",
		`{"preset":"ietf","carrier":7}`: "carrier",
	} {
		if _, err := contract.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want an error with %q", text, err, problem)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]struct {
		d    time.Duration
		back string
	}{
		"24h": {24 * time.Hour, "24h"}, "1d": {24 * time.Hour, "24h"}, "30d": {720 * time.Hour, "30d"}, "7d": {168 * time.Hour, "7d"},
		"6d": {144 * time.Hour, "144h"}, "1d12h": {36 * time.Hour, "36h"}, "90s": {90 * time.Second, "1m30s"}, "5m": {5 * time.Minute, "5m"},
		"10m": {10 * time.Minute, "10m"}, "1h10m": {70 * time.Minute, "1h10m"}, "1.5h": {90 * time.Minute, "1h30m"}, "0s": {0, "0s"},
		"250ms": {250 * time.Millisecond, "250ms"}, "-1h": {-time.Hour, "-1h"}, "106751d": {106751 * 24 * time.Hour, "106751d"},
	} {
		d, err := contract.ParseDuration(text)
		if err != nil || d.D() != want.d || d.String() != want.back {
			t.Errorf("%s is %s (%q), %v; want %s (%q)", text, d.D(), d, err, want.d, want.back)
		}
	}
	for _, text := range []string{"", "0", "24", "d", "1.5d", "-1d", "1d-1h", "1d+1h", "1dd", "106752d", "106751d24h", "1d 2h", "x", "99999999999d", "1d12"} {
		if d, err := contract.ParseDuration(text); err == nil {
			t.Errorf("%q is read as %s", text, d)
		}
	}
	var r contract.Retention
	if err := json.Unmarshal([]byte(`{"minimum":"30d"}`), &r); err != nil || r.Minimum.D() != 720*time.Hour {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"24h", "30d", "1d12h", "0", "d", "1.5h", "-1h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := contract.ParseDuration(text)
		if err != nil {
			return
		}
		if back, err := contract.ParseDuration(d.String()); err != nil || back != d {
			t.Fatalf("%q is %d, written as %q, read as %d, %v", text, d, d, back, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, c := range contract.Presets() {
		data, _ := json.Marshal(c)
		f.Add(data)
	}
	f.Add([]byte(`{"preset":"ietf","retention":{"minimum":"1d"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := contract.Parse(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := contract.Parse(text)
		if err != nil {
			t.Fatalf("%s is valid, and %s is not: %v", data, text, err)
		}
		if again, _ := json.Marshal(back); string(again) != string(text) {
			t.Fatalf("%s becomes %s", text, again)
		}
		if c.Words() == "" || c.Shape().String() == "" {
			t.Fatal("no words")
		}
	})
}
