// Package alerts tests docs/alerts.yaml, docs/controller-runtime-rules.yaml and docs/dashboard.json with promtool, on the series of
// tests.yaml, names.yaml and panels.yaml. The script check finds promtool and runs the test.
package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// rule is a rule of docs/alerts.yaml or docs/controller-runtime-rules.yaml.
type rule struct {
	Alert  string `json:"alert"`
	Record string `json:"record"`
}

// group is a group of rules, as files of rules have it.
type group struct {
	Rules []rule `json:"rules"`
}

// ruleTests is what is read of tests.yaml.
type ruleTests struct {
	Tests []struct {
		Alerts []struct {
			Name     string           `json:"alertname"`
			Expected []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// query is a query of a panel, with the unit of its values.
type query struct {
	panel, ref, expr, legend, unit string
}

func (q query) name() string { return q.panel + " " + q.ref }

// panel is a panel of docs/dashboard.json.
type panel struct {
	Title       string  `json:"title"`
	Type        string  `json:"type"`
	Description string  `json:"description"`
	Panels      []panel `json:"panels"`
	Targets     []struct {
		Ref    string `json:"refId"`
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
	FieldConfig struct {
		Defaults  struct{ Unit string } `json:"defaults"`
		Overrides []struct {
			Matcher    struct{ ID, Options string } `json:"matcher"`
			Properties []struct {
				ID    string
				Value any
			} `json:"properties"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
}

// queries returns the queries of p and of the panels within it.
func (p panel) queries() (all []query) {
	for _, t := range p.Targets {
		q := query{panel: p.Title, ref: t.Ref, expr: t.Expr, legend: t.Legend, unit: p.FieldConfig.Defaults.Unit}
		for _, o := range p.FieldConfig.Overrides {
			for _, each := range o.Properties {
				if o.Matcher.ID == "byFrameRefID" && o.Matcher.Options == t.Ref && each.ID == "unit" {
					q.unit = fmt.Sprint(each.Value)
				}
			}
		}
		all = append(all, q)
	}
	for _, inner := range p.Panels {
		all = append(all, inner.queries()...)
	}
	return all
}

// expectations is panels.yaml.
type expectations struct {
	// Series holds series of the job "a" and the controller "web", with their values at each minute.
	Series map[string]string `json:"series"`
	// Want holds, by the name of a panel and of its query, the labels and the values of the answer after 30 minutes.
	Want map[string]map[string]float64 `json:"want"`
}

func read(t *testing.T, file string, into any) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return text
}

// run runs promtool, which the variable PROMTOOL names, in a folder.
func run(t *testing.T, folder string, args ...string) {
	t.Helper()
	if os.Getenv("PROMTOOL") == "" {
		t.Skip("the variable PROMTOOL does not name promtool: run the script check")
	}
	command := exec.CommandContext(t.Context(), os.Getenv("PROMTOOL"), args...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func write(t *testing.T, file string, content any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Each alert fires in a case of tests.yaml, and does not in another.
func TestAlerts(t *testing.T) {
	t.Parallel()
	var rules struct {
		Spec struct {
			Groups []group `json:"groups"`
		} `json:"spec"`
	}
	var tests ruleTests
	text := read(t, "../../docs/alerts.yaml", &rules)
	cases := read(t, "tests.yaml", &tests)
	fires, isQuiet := make(map[string]bool), make(map[string]bool)
	for _, test := range tests.Tests {
		for _, each := range test.Alerts {
			if len(each.Expected) > 0 {
				fires[each.Name] = true
			} else {
				isQuiet[each.Name] = true
			}
		}
	}
	seen := 0
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			seen++
			if !fires[r.Alert] || !isQuiet[r.Alert] {
				t.Errorf("tests.yaml has a case in which %s fires: %t, and one in which it does not: %t", r.Alert, fires[r.Alert], isQuiet[r.Alert])
			}
		}
	}
	if n := strings.Count(string(text), "expr:"); seen == 0 || seen != n {
		t.Errorf("%d of %d rules were seen", seen, n)
	}
	var object map[string]any
	read(t, "../../docs/alerts.yaml", &object)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "rules.yaml"), object["spec"]) // the rest belongs to the operator of Prometheus
	if err := os.WriteFile(filepath.Join(folder, "tests.yaml"), cases, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, folder, "check", "rules", "rules.yaml")
	run(t, folder, "test", "rules", "tests.yaml")
}

// Each name of controller-runtime that a rule records has a test in names.yaml, and stands in docs/metrics.md.
func TestControllerRuntimeNames(t *testing.T) {
	t.Parallel()
	const file = "../../docs/controller-runtime-rules.yaml"
	var rules struct {
		Spec struct {
			Groups []group `json:"groups"`
		} `json:"spec"`
	}
	var tests struct {
		Tests []struct {
			Queries []struct {
				Expr    string           `json:"expr"`
				Samples []map[string]any `json:"exp_samples"`
			} `json:"promql_expr_test"`
		} `json:"tests"`
	}
	read(t, file, &rules)
	cases := read(t, "names.yaml", &tests)
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	isTested := make(map[string]bool)
	for _, test := range tests.Tests {
		for _, q := range test.Queries {
			isTested[q.Expr] = len(q.Samples) > 0
		}
	}
	seen := 0
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			seen++
			if !isTested[r.Record] {
				t.Errorf("names.yaml has no test of %q", r.Record)
			}
			if name := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(r.Record, ""); !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/metrics.md does not name %s", name)
			}
		}
	}
	if seen == 0 {
		t.Error("there are no rules")
	}
	var object map[string]any
	read(t, file, &object)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "rules.yaml"), object["spec"])
	if err := os.WriteFile(filepath.Join(folder, "names.yaml"), cases, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, folder, "check", "rules", "--lint-fatal", "rules.yaml")
	run(t, folder, "test", "rules", "names.yaml")
}

// Each query of the dashboard returns the numbers of panels.yaml, for one chosen job and one chosen controller. Regression: a panel
// showed the largest watched namespace in place of all, and one ignored the chosen controller.
func TestPanels(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []panel `json:"panels"`
	}
	var want expectations
	text := read(t, "../../docs/dashboard.json", &dashboard)
	read(t, "panels.yaml", &want)
	var queries []query
	for _, p := range dashboard.Panels {
		queries = append(queries, p.queries()...)
		if p.Type != "row" && p.Description == "" {
			t.Errorf("the panel %s has no description", p.Title)
		}
	}
	if n := strings.Count(string(text), `"expr":`); len(queries) == 0 || len(queries) != n {
		t.Errorf("%d of %d queries were seen", len(queries), n)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", "a", "$controller", "web")
	type sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	type check struct {
		Expr     string   `json:"expr"`
		EvalTime string   `json:"eval_time"`
		Samples  []sample `json:"exp_samples"`
	}
	var checks []check
	for _, q := range queries {
		c := check{Expr: variables.Replace(q.expr), EvalTime: "30m"}
		if strings.Contains(c.Expr, "$") {
			t.Errorf("%s has a variable without a value: %s", q.name(), c.Expr)
		}
		wanted, isThere := want.Want[q.name()]
		if !isThere || len(wanted) == 0 {
			t.Errorf("panels.yaml wants nothing of %s: %s", q.name(), q.expr)
		}
		delete(want.Want, q.name())
		for labels, value := range wanted {
			c.Samples = append(c.Samples, sample{labels, value})
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(q.legend, -1) {
				if !strings.Contains(labels, label[1]+"=") {
					t.Errorf("the legend of %s has the label %s, and the answer has %s", q.name(), label[1], labels)
				}
			}
		}
		checks = append(checks, c)
		checkUnit(t, q)
	}
	for name := range want.Want {
		t.Errorf("panels.yaml has %s, which the dashboard lacks", name)
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "rules.yaml"), map[string]any{"groups": []group{}})
	write(t, filepath.Join(folder, "panels.yaml"), map[string]any{
		"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m",
		"tests": []any{map[string]any{"interval": "1m", "input_series": withOthers(want.Series), "promql_expr_test": checks}},
	})
	run(t, folder, "test", "rules", "panels.yaml")
}

// checkUnit reports a unit that does not fit the query. For example, a rate in numbers and a time in bytes do not fit.
func checkUnit(t *testing.T, q query) {
	t.Helper()
	metric := regexp.MustCompile(`(yare|process|go)_\w+`).FindString(q.expr)
	var units []string
	switch {
	case strings.Contains(q.expr, "histogram_quantile"), strings.Contains(metric, "timestamp"), strings.HasSuffix(metric, "_seconds"):
		units = []string{"s"}
	case strings.Contains(metric, "cpu"):
		units = []string{"percentunit"}
	case strings.Contains(q.expr, "rate("):
		units = []string{"ops", "reqps"}
	case strings.HasSuffix(metric, "_bytes"):
		units = []string{"bytes"}
	default:
		units = []string{"short"}
	}
	if !slices.Contains(units, q.unit) {
		t.Errorf("the unit of %s is %q, want one of %q: %s", q.name(), q.unit, units, q.expr)
	}
}

// withOthers returns series, and each of them once more for another job and another controller, which nobody has chosen.
func withOthers(series map[string]string) (all []map[string]string) {
	add := func(name, values string) {
		all = append(all, map[string]string{"series": name, "values": values})
	}
	for name, values := range series {
		add(name, values)
		add(strings.Replace(name, `job="a"`, `job="other"`, 1), "0+7777x60")
		if strings.Contains(name, `controller="web"`) {
			add(strings.Replace(name, `controller="web"`, `controller="other"`, 1), "0+7777x60")
		}
	}
	return all
}
