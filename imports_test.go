package semel_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/semel-dev/semel"

// layers says which packages of ours, and which foreign modules, a package may
// import. Packages below a listed folder follow its line; the longest one counts.
// Tests may import what they like.
var layers = map[string]struct {
	ours, foreign []string
	why           string
}{
	"":                              {nil, nil, "the hub stays free of everything but the standard library"},
	"contract":                      {nil, nil, "what APIs promise is data"},
	"fingerprint":                   {nil, nil, "a digest is pure"},
	"schema":                        {[]string{"", "fingerprint"}, []string{"github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/text"}, "the one place that knows JSON Schema"},
	"storetest":                     {[]string{""}, nil, "the judge knows the contract of stores only"},
	"sqlite":                        {[]string{"", "internal/sqltext"}, []string{"modernc.org/sqlite"}, "rim packages do not know each other"},
	"postgres":                      {[]string{"", "internal/sqltext"}, []string{"github.com/jackc/pgx/v5"}, "rim packages do not know each other"},
	"effect":                        {[]string{"", "contract"}, nil, "an effect knows its contract, not who runs it"},
	"worker":                        {[]string{"", "contract", "effect"}, nil, "the named pair worker → effect"},
	"httpapi":                       {[]string{"", "contract", "fingerprint"}, []string{"github.com/goccy/go-yaml"}, "HTTP speaks to the ledger, never to a store"},
	"idempotency":                   {[]string{"", "contract", "fingerprint", "httpapi/problem"}, nil, "the middleware speaks to the ledger, never to a store"},
	"retryhttp":                     {[]string{"", "contract"}, []string{"go.opentelemetry.io/otel"}, "the transport knows contracts, not servers"},
	"client":                        {[]string{"", "contract", "fingerprint", "retryhttp", "httpapi/problem"}, []string{"go.etcd.io/bbolt"}, "the named pair client → retryhttp"},
	"console":                       {nil, nil, "the console speaks only HTTP"},
	"sdk":                           {nil, nil, "the browser package is files"},
	"fault":                         {nil, []string{"golang.org/x/net"}, "faults know connections only"},
	"metrics":                       {[]string{""}, []string{"github.com/prometheus/client_golang"}, "Prometheus stays in one leaf"},
	"examples/menuexport/generator": {nil, []string{"golang.org/x/image", "golang.org/x/text"}, "the external service knows nothing of its callers"},
	"examples":                      {[]string{"*"}, nil, "examples use the public packages"},
	"lab":                           {[]string{"*"}, []string{"github.com/anishathalye/porcupine"}, "the lab uses the public packages"},
	"internal":                      {[]string{"*"}, []string{"*"}, "what nobody else should import"},
	"cmd":                           {[]string{"*"}, []string{"*"}, "commands wire everything"},
}

func TestImportsFollowTheHouse(t *testing.T) {
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "node_modules", "testdata", "bench":
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		if folder == "." {
			folder = ""
		}
		room := folder
		for {
			if _, ok := layers[room]; ok {
				break
			}
			if room == "" {
				t.Errorf("%s: no line in layers for this package", file)
				return nil
			}
			if room = path.Dir(room); room == "." {
				t.Errorf("%s: no line in layers for folder %s", file, folder)
				return nil
			}
		}
		for _, spec := range parsed.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if !allowed(room, folder, imported) {
				t.Errorf("%s imports %s: %s", file, imported, layers[room].why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func allowed(room, folder, imported string) bool {
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return true // standard library
	}
	list := layers[room].foreign
	if imported == module || strings.HasPrefix(imported, module+"/") {
		imported = strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		if imported == folder || room != "" && strings.HasPrefix(imported, room+"/") {
			return true
		}
		if list = layers[room].ours; imported == "" {
			for _, ok := range list {
				if ok == "" || ok == "*" {
					return true
				}
			}
			return false
		}
	}
	for _, ok := range list {
		if ok == "*" || ok != "" && (imported == ok || strings.HasPrefix(imported, ok+"/")) {
			return true
		}
	}
	return false
}
