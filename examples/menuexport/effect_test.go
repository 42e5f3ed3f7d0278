package menuexport_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/examples/menuexport"
	"github.com/semel-dev/semel/examples/menuexport/generator"
)

const menu = `{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}],"theme":"light","width":320}`

// What a call has made, a look-up finds, under the same address; and both give
// pictures an address on our side.
func TestLookUpFindsWhatTheCallMade(t *testing.T) {
	for _, name := range []string{"idempotent", "queryable", "opaque"} {
		t.Run(name, func(t *testing.T) {
			gen, err := generator.New(t.TempDir(), &generator.Options{Contract: generator.Contract(name)})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(gen)
			defer server.Close()
			defer gen.Close()
			promised, err := menuexport.Contract(name)
			if err != nil {
				t.Fatal(err)
			}
			export, err := menuexport.NewEffect(server.URL, promised)
			if err != nil {
				t.Fatal(err)
			}
			call := &effect.Call{Key: semel.Key{Account: "acme", Kind: menuexport.KindName, ID: "one"},
				Params: json.RawMessage(menu), Request: []byte(menu), Contract: promised}
			made := export.Do(t.Context(), call)
			if made.Proof.Proves != contract.Applied {
				t.Fatalf("%+v", made)
			}
			if !strings.Contains(string(made.Output), `"image_url":"/menus/one/images/`) {
				t.Errorf("the output is %s", made.Output)
			}
			if !promised.Shape().Queryable {
				return
			}
			found := export.(effect.Finder).LookUp(t.Context(), call)
			if found.Found != contract.FoundSucceeded || string(found.Output) != string(made.Output) {
				t.Errorf("found %+v, made %s", found, made.Output)
			}
		})
	}
}
