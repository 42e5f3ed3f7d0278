package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/semel-dev/semel/contract"
)

// Every word that a contract can use is told in the words.
func TestWordsTellEveryAxis(t *testing.T) {
	tests := []struct{ json, say string }{
		{`{"carrier":{"in":"directive","name":"@idempotent(key)"}}`, "the directive @idempotent(key)"},
		{`{"carrier":{"in":"body","name":"/k","or":[{"in":"query","name":"q"}]}}`, "in the body at /k, or in the query parameter q."},
		{`{"carrier":{"in":"path","name":"id"}}`, "in the URL as {id}"},
		{`{"key":{"form":"uuid"}}`, "A key is a UUID."},
		{`{"key":{"min_length":33,"unit":"bytes"}}`, "at least 33 bytes"},
		{`{"key":{"quoting":"quoted","charset":"digits"}}`, "made of digits, in quotes"},
		{`{"use":{"required":"required","missing":400}}`, "It is required (without it: 400)."},
		{`{"scope":{"within":["account","object_type"]}}`, "its account and object type."},
		{`{"carrier":{"in":"query","name":"k"}}`, "does not say how long a key is kept"},
		{`{"retention":{"minimum":"1h","hard_end":"2h","from":"completion"}}`, "at least 1h and at most 2h from the end of the first execution; it does not say what happens afterwards."},
		{`{"compare":{"what":["nothing"]}}`, "in nothing."},
		{`{"compare":{"what":["paths","headers","raw_body"],"paths":["/a"],"headers":["X-V"]}}`, "in: the members /a, the headers X-V, raw body."},
		{`{"mismatch":{"do":"refused"}}`, "is refused."},
		{`{"mismatch":{"do":"replayed"}}`, "silently gets the first answer"},
		{`{"mismatch":{"do":"executed"}}`, "silently runs"},
		{`{"in_progress":{"do":"waits"}}`, "a second waits"},
		{`{"in_progress":{"do":"unspecified"}}`, "may fail in any way"},
		{`{"in_progress":{"do":"runs","after_crash":"resumes"}}`, "a second runs too. After a crash of the API, a repeat takes the work up again."},
		{`{"in_progress":{"after_crash":"in_progress_until_expiry"}}`, "until the key expires"},
		{`{"in_progress":{"after_crash":"runs_again"}}`, "a repeat runs again"},
		{`{"replay":{"form":"resumed","marker":{"header":"X-R"}}}`, "marked by X-R."},
		{`{"stored":{"outcomes":"every","except":[429,408],"only_once_begun":true}}`, "Every answer is stored, except 429, 408, once the execution has begun."},
		{`{"stored":{"outcomes":"all_but_transient","transient":{"header":"T","value":"true"}}}`, "An answer with T: true does not use the key up."},
		{`{"carrier":{"in":"query","name":"k"},"retention":{"after":"kept_for_ever"}}`, "does not say what a repeat does after a server error"},
		{`{"answers":{"code_at":["/c"],"code_in_2xx":true,"applied":[{"status":409,"code":"exists","at":"/x"}]}}`, "Successes besides 2xx: 409 /x exists. A 2xx that carries a code is no success."},
		{`{"look_up":{"by":"natural_key"}}`, "unique by itself"},
		{`{"cancel":{"leaves":"blocks"}}`, "a proof of absence"},
		{`{"successor":{"rule":"never"}}`, "never takes over"},
		{`{}`, "This API: it can neither be called again nor looked up"},
	}
	for _, tt := range tests {
		c, err := contract.Parse([]byte(tt.json))
		if err != nil {
			t.Errorf("%s: %v", tt.json, err)
			continue
		}
		if words := c.Words(); !strings.Contains(words, tt.say) {
			t.Errorf("%s is told as\n%s\nwhich lacks %q", tt.json, words, tt.say)
		}
	}
}

func TestShapeAsText(t *testing.T) {
	for name, want := range map[string]string{contract.Semel: `"idempotent+queryable"`, contract.Opaque: `"opaque"`} {
		if got, err := json.Marshal(preset(t, name).Shape()); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if !(contract.Contract{}).Shape().Opaque() || preset(t, contract.Queryable).Shape().Opaque() {
		t.Error("opaque means neither idempotent nor queryable")
	}
}
