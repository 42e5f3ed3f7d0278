package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write docs/config.schema.json")

const example = `
listen: 127.0.0.1:9000
database: data/semel.db
accounts:
  acme:
    tokens:
      - name: web shop
        hash: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
operators:
  - {name: kim, hash: "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752", accounts: ["*"]}
kinds:
  order:
    schema: {type: object, required: [sku], properties: {sku: {type: string}, amount: {type: integer, default: 1}}}
    retention: 30d
    contract: stripe-v1
    http:
      url: http://127.0.0.1:9999/orders
`

func TestParse(t *testing.T) {
	c, err := Parse("/etc/semel/semel.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:9000" || c.Database != "/etc/semel/data/semel.db" {
		t.Errorf("listen %q, database %q", c.Listen, c.Database)
	}
	order := c.Kinds["order"]
	if order.Retention.D() != 30*24*time.Hour {
		t.Errorf("retention %v", order.Retention.D())
	}
	if promised, err := order.ParseContract(); err != nil || promised.Name != "stripe-v1" {
		t.Errorf("contract %q, %v", promised.Name, err)
	}
	var schema struct {
		Properties struct{ Amount struct{ Default int } }
	}
	if err := json.Unmarshal(order.Schema, &schema); err != nil || schema.Properties.Amount.Default != 1 {
		t.Errorf("schema %s: %v", order.Schema, err)
	}
}

func TestSchemaFileIsCurrent(t *testing.T) {
	text := reflect.TypeFor[Duration]()
	schema, err := jsonschema.For[Config](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Time](): {Type: "string"},
		text:                    {Type: "string", Description: "Such as 90s, 24h or 30d."},
		reflect.TypeFor[JSON](): {},
	}})
	if err != nil {
		t.Fatal(err)
	}
	schema.Title, schema.Schema = "Configuration of semel serve", "https://json-schema.org/draft/2020-12/schema"
	want, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	file := filepath.Join("..", "..", "docs", "config.schema.json")
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("docs/config.schema.json is stale (%v): run `go test ./internal/config -update`", err)
	}
}

var (
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	putHere   = regexp.MustCompile(`sha256:\(.*?\)`)
)

// What docs/configuration.md shows is a configuration.
func TestDocumentedConfigurationsAreValid(t *testing.T) {
	t.Setenv("SEMEL_SESSION_KEY", strings.Repeat("k", 32))
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("there is nothing to check")
	}
	for _, block := range blocks {
		tokens := 0
		text := putHere.ReplaceAllStringFunc(block[1], func(string) string { tokens++; return fmt.Sprintf("sha256:%064x", tokens) })
		if _, err := Parse("configuration.md", []byte(text)); err != nil {
			t.Errorf("%v in:\n%s", err, block[1])
		}
	}
}
