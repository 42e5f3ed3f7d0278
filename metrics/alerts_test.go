package metrics_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/semel-dev/semel/internal/pgtest"
)

// read reads a YAML file of the folder deploy.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

type rule struct {
	Alert, Expr string
	Annotations map[string]string
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	read(t, "alerts.yaml", &file)
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatal("not one group of alerts")
	}
	return file.Groups[0].Rules
}

// Prometheus's own tool reads the alerts, and says of made-up series which of them
// fire.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		pgtest.Missing(t, errors.New("no promtool: install Debian's package prometheus, or run scripts/need"))
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = "../deploy"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// That tool is content with an alert that nothing is tested of, and with series
// that nobody makes. So: every alert fires in one test and does not in another, and
// every series there is one that a server has.
func TestEveryAlertIsTestedBothWays(t *testing.T) {
	var file struct {
		Tests []struct {
			Input []struct{ Series string } `yaml:"input_series"`
			Cases []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	read(t, "alerts_test.yaml", &file)
	fires, quiet := map[string]bool{}, map[string]bool{}
	scraped := page(t)
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if len(c.Fires) > 0 {
				fires[c.Alert] = true
			} else {
				quiet[c.Alert] = true
			}
		}
		for _, in := range test.Input {
			if !strings.Contains(shapes(scraped), shapes(in.Series)) {
				t.Errorf("a server has no series like %s", in.Series)
			}
		}
	}
	for _, rule := range alerts(t) {
		if !fires[rule.Alert] || !quiet[rule.Alert] {
			t.Errorf("%s: one test where it fires: %v, one where it does not: %v", rule.Alert, fires[rule.Alert], quiet[rule.Alert])
		}
	}
}

// shapes keeps the names of metrics and labels only, a line each; the label that
// Prometheus adds is left out.
func shapes(text string) string {
	var lines []string
	for _, found := range regexp.MustCompile(`(?m)^(semel_\w+)(\{.*?\})?`).FindAllStringSubmatch(text, -1) {
		line := found[1] + ":"
		names := regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(found[2], -1)
		for _, label := range []string{"code", "kind", "state"} {
			for _, name := range names {
				if name[1] == label {
					line += " " + label
				}
			}
		}
		lines = append(lines, line)
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// Every alert speaks of metrics that there are, and of a paragraph that says what
// to do.
func TestAlertsSpeakOfWhatThereIs(t *testing.T) {
	manual, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	scraped := page(t)
	for _, rule := range alerts(t) {
		for _, name := range regexp.MustCompile(`semel_\w+`).FindAllString(rule.Expr, -1) {
			if !strings.Contains(scraped, "# TYPE "+name+" ") {
				t.Errorf("%s: there is no metric %s", rule.Alert, name)
			}
		}
		if !strings.Contains(string(manual), "\n## "+rule.Alert+"\n") {
			t.Errorf("docs/operating.md does not say what to do for %s", rule.Alert)
		}
		if rule.Annotations["runbook"] != "docs/operating.md#"+strings.ToLower(rule.Alert) {
			t.Errorf("%s: runbook %q", rule.Alert, rule.Annotations["runbook"])
		}
	}
}
