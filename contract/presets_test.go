package contract_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

var complete = contract.Wire{Going: contract.Begun, Sends: 1, Arrival: contract.ArrivedComplete}

func checkSamples(t *testing.T, c contract.Contract, samples []sample) {
	t.Helper()
	for _, s := range samples {
		p := c.Classify(contract.Request{Method: "POST", Keyed: true, Replayable: true}, complete, s.answer())
		if p.Proves != s.proves || p.Reach != s.reach || p.Cause != s.cause {
			t.Errorf("%s: %s proves %s/%s/%s, want %s/%s/%s", c.Name, s.says, p.Proves, p.Reach, p.Cause, s.proves, s.reach, s.cause)
		}
	}
}

func TestPresetsProve(t *testing.T) {
	for _, c := range contract.Presets() {
		if len(presetSamples[c.Name]) == 0 {
			t.Errorf("%s has no samples", c.Name)
		}
		checkSamples(t, c, presetSamples[c.Name])
	}
}

func TestOtherAPIsCanBeSaid(t *testing.T) {
	for _, api := range otherAPIs {
		c := api.make()
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if got := c.Shape().String(); got != api.shape {
			t.Errorf("%s is %s, want %s", c.Name, got, api.shape)
		}
		checkSamples(t, c, api.samples)
	}
	if !strings.Contains(payPal().Words(), "Take care: its documentation advises a new key") {
		t.Error("the words do not warn of a dangerous successor rule")
	}
	if !strings.Contains(square().Words(), "cancelled by the key") {
		t.Error("the words do not tell of cancelling by the key")
	}
}

func TestPresetShapes(t *testing.T) {
	want := map[string]string{
		contract.IETF: "idempotent", contract.StripeV1: "idempotent", contract.AIP155: "idempotent", contract.Azure: "idempotent",
		contract.Increase: "idempotent+queryable", contract.Semel: "idempotent+queryable",
		contract.Idempotent: "idempotent", contract.Queryable: "queryable", contract.Opaque: "opaque",
	}
	for _, c := range contract.Presets() {
		if got := c.Shape().String(); got != want[c.Name] {
			t.Errorf("%s is %q, want %q", c.Name, got, want[c.Name])
		}
		delete(want, c.Name)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	for name := range want {
		t.Errorf("no preset %s", name)
	}
	if _, err := contract.Preset("stripe"); err == nil || !strings.Contains(err.Error(), "stripe-v1") {
		t.Errorf("the error for an unknown preset does not name the known ones: %v", err)
	}
}

// A preset is a fresh copy: nobody can change somebody else's.
func TestPresetsAreCopies(t *testing.T) {
	for _, c := range contract.Presets() {
		before, _ := json.Marshal(c)
		for i := range c.Answers.Refused {
			c.Answers.Refused[i].Status = 999
		}
		again, _ := contract.Preset(c.Name)
		if after, _ := json.Marshal(again); string(after) != string(before) {
			t.Errorf("%s was changed from outside", c.Name)
		}
	}
}

func TestPresetsSurviveJSON(t *testing.T) {
	all := contract.Presets()
	for _, api := range otherAPIs {
		all = append(all, api.make())
	}
	for _, c := range all {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back contract.Contract
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if !reflect.DeepEqual(c, back) {
			t.Errorf("%s changes on its way through JSON:\n%+v\n%+v", c.Name, c, back)
		}
		if back, err = contract.Parse(data); err != nil || !reflect.DeepEqual(c, back) {
			t.Errorf("%s changes on its way through Parse: %v", c.Name, err)
		}
	}
	if data, _ := json.Marshal(contract.Contract{}); string(data) != "{}" {
		t.Errorf("a contract that says nothing is written as %s", data)
	}
}

// Every axis that a preset sets has a source, every source speaks of something that is set, and what is unverified in
// the data is named as unverified in the comment of the preset's name.
func TestPresetSources(t *testing.T) {
	comments := presetComments(t)
	for _, c := range contract.Presets() {
		data, _ := json.Marshal(c)
		var axes map[string]any
		json.Unmarshal(data, &axes)
		delete(axes, "name")
		delete(axes, "title")
		comment := comments[c.Name]
		_, unverified, _ := strings.Cut(comment, "Unverified:")
		for _, s := range contract.Sources(c.Name) {
			var at any = axes
			for step := range strings.SplitSeq(s.Field, ".") {
				m, _ := at.(map[string]any)
				at = m[step]
			}
			if at == nil {
				t.Errorf("%s: a source for %s, which is not set", c.Name, s.Field)
			}
			if s.From == "" {
				t.Errorf("%s: no document for %s", c.Name, s.Field)
			}
			axis, _, _ := strings.Cut(s.Field, ".")
			if named := strings.Contains(unverified, s.Field) || strings.Contains(unverified, axis+",") || strings.Contains(unverified, axis+" ("); s.Unverified && !named {
				t.Errorf("%s: %s is unverified, and the comment does not say so", c.Name, s.Field)
			}
		}
		for axis := range axes {
			if !hasSource(c.Name, axis) {
				t.Errorf("%s: no source for %s", c.Name, axis)
			}
		}
		if comment == "" {
			t.Errorf("%s: no comment", c.Name)
		}
	}
	if contract.Sources("nobody") != nil {
		t.Error("sources of a preset that does not exist")
	}
}

func hasSource(preset, axis string) bool {
	for _, s := range contract.Sources(preset) {
		if got, _, _ := strings.Cut(s.Field, "."); got == axis {
			return true
		}
	}
	return false
}

// presetComments reads the comments of the presets' names in the source, by name.
func presetComments(t *testing.T) map[string]string {
	comments := map[string]string{}
	for _, file := range []string{"presets_public.go", "presets_plain.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				lit, ok := v.Values[0].(*ast.BasicLit)
				if ok && v.Doc != nil {
					comments[strings.Trim(lit.Value, `"`)] = strings.Join(strings.Fields(v.Doc.Text()), " ")
				}
			}
		}
	}
	return comments
}

func TestBudget(t *testing.T) {
	tests := []struct {
		name   string
		change func(*contract.Contract)
		budget time.Duration
		ok     bool
	}{
		{contract.StripeV1, nil, 24 * time.Hour, true},
		{contract.StripeV1, nil, 24*time.Hour + 1, false},
		{contract.Azure, nil, 10 * time.Minute, false},
		{contract.Increase, nil, 1000 * time.Hour, true},
		{contract.Semel, nil, 31 * 24 * time.Hour, false},
		{contract.Queryable, nil, 1000 * time.Hour, true},
		{contract.Opaque, nil, 1000 * time.Hour, true},
		{contract.Idempotent, func(c *contract.Contract) { c.Retention.Minimum = contract.Duration(2 * time.Second) }, 3 * time.Second, false},
	}
	for _, tt := range tests {
		c, _ := contract.Preset(tt.name)
		if tt.change != nil {
			tt.change(&c)
		}
		err := c.CheckBudget(tt.budget)
		if (err == nil) != tt.ok {
			t.Errorf("%s with a budget of %s: %v", tt.name, tt.budget, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "retention.minimum: ") {
			t.Errorf("the error does not name the field: %v", err)
		}
	}
}

// Every contract with a place for a key has a key that it accepts itself.
func TestContractsAcceptTheirKeys(t *testing.T) {
	for _, c := range everyContract() {
		if c.Carrier.In == "" {
			continue
		}
		key, err := c.FormatKey("seed")
		if err == nil {
			err = c.Key.CheckKey(key)
		}
		if err != nil {
			t.Errorf("%s: %q, %v", c.Name, key, err)
		}
	}
}
