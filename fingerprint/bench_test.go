package fingerprint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/fingerprint"
)

// samples are requests as services get them, none of them canonical already.
func samples() map[string][]byte {
	day := `{"day":"周一","dishes":["番茄炒蛋","米饭","Soup \"of the day\""]}`
	menu := `{"title": "本周菜单", "days": [` + strings.TrimSuffix(strings.Repeat(day+", ", 7), ", ") + `], "theme": "light", "width": 800}`
	var order strings.Builder
	order.WriteString(`{"customer": "c-81", "currency": "EUR", "lines": [`)
	for i := range 200 {
		if i > 0 {
			order.WriteString(", ")
		}
		fmt.Fprintf(&order, `{"sku": "A-%05d", "quantity": %d, "price": %d.50, "note": "line\nbreak", "gift": false}`, i, i%7+1, i)
	}
	order.WriteString(`]}`)
	return map[string][]byte{
		"small": []byte(`{"to": "acme", "amount": 12.50, "currency": "EUR"}`),
		"menu":  []byte(menu),
		"order": []byte(order.String()),
	}
}

// BenchmarkCanonical reads a document and writes its canonical form. The metric
// x-json is how many times longer encoding/json takes, in the same run, to read
// the document into an any and to write it again.
func BenchmarkCanonical(b *testing.B) {
	against(b, func(doc []byte) {
		if _, err := fingerprint.Canonical(doc); err != nil {
			b.Fatal(err)
		}
	}, func(doc []byte) {
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkOf makes the whole fingerprint, hash included; x-json as above.
func BenchmarkOf(b *testing.B) {
	against(b, func(doc []byte) {
		if _, err := fingerprint.Of("menu-export", doc); err != nil {
			b.Fatal(err)
		}
	}, func(doc []byte) {
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkEncode writes a document that has been read; x-json is json.Marshal.
func BenchmarkEncode(b *testing.B) {
	values, anys := map[string]fingerprint.Value{}, map[string]any{}
	for _, doc := range samples() {
		values[string(doc)] = must(b, string(doc))
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			b.Fatal(err)
		}
		anys[string(doc)] = v
	}
	var buf []byte
	against(b, func(doc []byte) { buf = fingerprint.AppendCanonical(buf[:0], values[string(doc)]) },
		func(doc []byte) {
			if _, err := json.Marshal(anys[string(doc)]); err != nil {
				b.Fatal(err)
			}
		})
}

// BenchmarkDiffer compares two large documents that differ at their end.
func BenchmarkDiffer(b *testing.B) {
	doc := string(samples()["order"])
	x, y := must(b, doc), must(b, strings.Replace(doc, `"A-00199"`, `"A-00200"`, 1))
	b.ReportAllocs()
	for b.Loop() {
		if len(fingerprint.Differ(x, y)) != 1 {
			b.Fatal("wrong answer")
		}
	}
}

// against times ours, and then theirs just as often.
func against(b *testing.B, ours, theirs func(doc []byte)) {
	for _, name := range []string{"small", "menu", "order"} {
		doc := samples()[name]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				ours(doc)
				n++
			}
			b.StopTimer()
			mine := b.Elapsed()
			start := time.Now()
			for range n {
				theirs(doc)
			}
			b.ReportMetric(float64(time.Since(start))/float64(mine), "x-json")
		})
	}
}
