package operator_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/webhook"
	"github.com/yare-go/yare/yaretest"
)

// metricTypes returns the metrics of a program with all features, as lines of a name and a type.
func metricTypes(t *testing.T) []string {
	t.Helper()
	var text strings.Builder
	if _, err := operator.NewProgramMetrics().WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	writeCallMetrics(t, &text, map[string]string{"webhooks": "127.0.0.1:0"})
	certificate, folder := testcert.New(t, x509.Certificate{DNSNames: []string{"localhost"}}, nil), t.TempDir()
	files := map[string][]byte{"webhook-cert": testcert.PEM(certificate.Leaf), "webhook-key": testcert.KeyPEM(t, certificate.PrivateKey)}
	flags := map[string]string{"webhooks": "127.0.0.1:0"}
	for name, content := range files {
		flags[name] = filepath.Join(folder, name)
		if err := os.WriteFile(flags[name], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeCallMetrics(t, &text, flags)
	return slices.Compact(pairsIn(`(?m)^# TYPE (\S+) (\S+)$`, text.String()))
}

// writeCallMetrics writes the metrics of a program that serves webhooks and conversions with flags, and has no server.
// The objects are counted at once with --webhook-cert alone, because the program then publishes no conversion.
func writeCallMetrics(t *testing.T, w io.Writer, flags map[string]string) {
	t.Helper()
	needs, err := lanternConverter().Needs()
	if err != nil {
		t.Fatal(err)
	}
	f, registry := calls.New(), new(metrics.Registry)
	d, err := f.Declare(&feature.Program{
		Name: "lanterns", Command: "run", Namespace: "shop", Needs: needs,
		Parts: []any{webhook.Validate(func(context.Context, *Lantern1, *Lantern1, *kube.Client) error { return nil }), lanternConverter()},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range d.Flags {
		if text, ok := flags[flag.Name]; ok {
			if err := flag.Set(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := operator.NoServer().WithFieldManager("lanterns")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	counting := make(chan struct{})
	err = f.Start(ctx, &feature.Host{
		Runtime: &controller.Runtime{Client: client, Cache: cache.New(client), Log: slog.New(slog.DiscardHandler)},
		Client:  client, NewClient: func() (*kube.Client, error) { return client, nil },
		WithHandlers:   func(c *kube.Client) *kube.Client { return c },
		AddCertificate: func(string, func() (time.Time, error)) {}, Metrics: registry,
		AreSubscribed: func() bool { defer close(counting); return true }, Ending: ctx.Done(), Fail: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-counting
	if flags["webhook-cert"] == "" {
		cancel()
	}
	yaretest.Eventually(t, func() error {
		var text strings.Builder
		_, err := registry.WriteTo(&text)
		if err == nil && flags["webhook-cert"] != "" && !strings.Contains(text.String(), "yare_conversion_annotated_objects") {
			err = errors.New("the objects are not counted yet")
		}
		return err
	})
	cancel()
	f.End()
	if _, err := registry.WriteTo(w); err != nil {
		t.Fatal(err)
	}
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
