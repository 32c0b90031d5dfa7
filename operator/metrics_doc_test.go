package operator

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
	"github.com/yare-go/yare/operator/internal/webhook/configpublishing"
	"github.com/yare-go/yare/operator/internal/webhook/crdpublishing"
)

// metricTypes returns the metrics of a program, as lines of a name and a type.
func metricTypes(t *testing.T) []string {
	t.Helper()
	m := newProgramMetrics(nil)
	registerStreamMetrics(m.registry, func() []cache.Stats { return nil }, func() []follow.StreamState { return nil })
	registerCertificates(m.registry, map[string]func() (time.Time, error){"pages": func() (time.Time, error) { return time.Now(), nil }})
	newCallMetrics(m.registry, nil)
	registerWebhookCertificates(m.registry, func() certificates.Status { return certificates.Status{} })
	registerWebhookConfigurations(m.registry, func() []configpublishing.Status { return nil })
	newConversionMetrics(m.registry, nil)
	registerPublishedConversions(m.registry, func() []crdpublishing.Status { return nil })
	registerObjectCounts(m.registry, nil, func() []crdpublishing.Status { return nil })
	var text strings.Builder
	if _, err := m.registry.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return pairsIn(`(?m)^# TYPE (\S+) (\S+)$`, text.String())
}

// pairsIn returns what the two groups of an expression match in text, sorted.
func pairsIn(expression, text string) []string {
	var all []string
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1]+" "+match[2])
	}
	slices.Sort(all)
	return all
}

// docs/metrics.md lists all metrics with their types.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	there := metricTypes(t)
	documented := pairsIn("(?m)^\\| `(\\w+)` \\| (counter|gauge|histogram) \\|", string(document))
	if len(there) == 0 || !slices.Equal(there, documented) {
		t.Errorf("the program has\n%s\ndocumented are\n%s", strings.Join(there, "\n"), strings.Join(documented, "\n"))
	}
}

// Every metric that the documents and the dashboard name exists.
func TestNamedMetricsExist(t *testing.T) {
	t.Parallel()
	isThere := make(map[string]bool)
	for _, line := range metricTypes(t) {
		name, kind, _ := strings.Cut(line, " ")
		isThere[name] = true
		if kind == "histogram" {
			isThere[name+"_bucket"], isThere[name+"_sum"], isThere[name+"_count"] = true, true, true
		}
	}
	for file, least := range map[string]int{"../docs/metrics.md": 20, "../docs/dashboard.json": 20, "../docs/alerts.yaml": 3} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\b(yare|process|go)_[a-z0-9_]*[a-z0-9]\b`).FindAllString(string(text), -1)
		names = slices.DeleteFunc(names, func(name string) bool { return name == "go_version" || name == "yare_version" }) // labels
		if len(names) < least {
			t.Errorf("%s names only %q", file, names)
		}
		for _, name := range names {
			if !isThere[name] {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}

// The dashboard shows every metric, and Grafana can import it.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title         string
		SchemaVersion int
		Panels        []struct {
			ID          int
			Type, Title string
			Targets     []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %d, %q, has no ID of its own, no title or no query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") || target.RefID == "" {
				t.Errorf("the panel %q has the query %q", p.Title, target.Expr)
			}
		}
	}
	if dashboard.Title == "" || dashboard.SchemaVersion == 0 || len(dashboard.Panels) == 0 {
		t.Errorf("the dashboard is %+v", dashboard)
	}
	for _, line := range metricTypes(t) {
		if name, _, _ := strings.Cut(line, " "); !strings.Contains(string(text), name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
