package schema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/schema"
)

// BenchmarkNormalize does all that is done to the parameters of one request. The
// metric x-json is how many times longer encoding/json takes, in the same run,
// to read them into an any and to write them again.
func BenchmarkNormalize(b *testing.B) {
	day := `{"day":"周一","dishes":["番茄炒蛋","米饭","Soup \"of the day\""]}`
	week := `{"title": "本周菜单", "days": [` + strings.TrimSuffix(strings.Repeat(day+", ", 7), ", ") + `], "width": 800}`
	c := compile(b, menuExport, nil)
	for name, run := range map[string]struct {
		canon  *schema.Canon
		params string
	}{
		"day": {c, menu}, "week": {c, week}, "week, no schema": {schema.JSON("menu-export"), week},
	} {
		params := []byte(run.params)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, _, err := run.canon.Normalize(params); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.StopTimer()
			mine, start := b.Elapsed(), time.Now()
			for range n {
				var v any
				if err := json.Unmarshal(params, &v); err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(v); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(time.Since(start))/float64(mine), "x-json")
		})
	}
}

// BenchmarkRecompile is why a caller keeps a Canon rather than its definition.
func BenchmarkRecompile(b *testing.B) {
	definition := compile(b, menuExport, nil).Definition()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Recompile("menu-export", definition); err != nil {
			b.Fatal(err)
		}
	}
}
