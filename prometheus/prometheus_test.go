package prometheus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/prometheus"
	"github.com/yare-go/yare/yaretest"
)

// programVariable names the program that this test binary is.
const programVariable = "YARE_TEST_PROGRAM"

// newRegistry returns a registry as authors have it: with the collectors of the process, and a metric of the author.
func newRegistry(others ...client.Collector) *client.Registry {
	registry := client.NewPedanticRegistry()
	orders := client.NewCounterVec(client.CounterOpts{Name: "orders_total", Help: "Orders."}, []string{"kind"})
	orders.WithLabelValues(`a "b"`).Add(7)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), orders)
	registry.MustRegister(others...)
	return registry
}

// gauge returns a metric of the author.
func gauge(name string) client.Collector {
	return client.NewGaugeFunc(client.GaugeOpts{Name: name, Help: "Mine."}, func() float64 { return 1 })
}

// failing is a collector whose metrics cannot be collected.
type failing struct{}

func (failing) Describe(chan<- *client.Desc) {}

func (failing) Collect(metrics chan<- client.Metric) {
	metrics <- client.NewInvalidMetric(client.NewInvalidDesc(errors.New("there is no database")), errors.New("there is no database"))
}

func TestMain(m *testing.M) {
	registry := newRegistry()
	begin := func() {}
	switch os.Getenv(programVariable) {
	case "":
		os.Exit(m.Run())
	case "conflict": // two names of yare, of which the second has no series
		registry.MustRegister(gauge("yare_build_info"), gauge("yare_reconciles_total"))
	case "late":
		begin = func() { registry.MustRegister(gauge("yare_leader")) }
	case "failing":
		registry.MustRegister(failing{})
	}
	wait := operator.Task("wait", func(ctx context.Context, _ *controller.Runtime) error { begin(); <-ctx.Done(); return nil })
	operator.Program{Name: "lamps", Parts: func() ([]operator.Part, error) {
		return []operator.Part{wait, operator.OnEveryReplica(prometheus.Gather(registry))}, nil
	}}.Main()
}

// nowhere returns the kubeconfig of a server that does not exist.
func nowhere(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/kubeconfig"
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n" +
		"users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a program, and returns the address of its pages.
func start(t *testing.T, program string) (p *yaretest.Process, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p = yaretest.Run(t, nowhere(t), "/usr/bin/env", programVariable+"="+program, self, "run", "--listen", "127.0.0.1:0")
	const message = "serving health and metrics"
	p.WaitForLog(t, message)
	for _, line := range p.Log() {
		var logged struct{ Msg, Address string }
		if strings.Contains(line, message) && json.Unmarshal([]byte(line), &logged) == nil {
			return p, logged.Address
		}
	}
	t.Fatalf("the log has no address: %v", p.Log())
	return nil, ""
}

// readPage returns the metrics of a program. The parser refuses a name that is there twice.
func readPage(address string) (map[string]*dto.MetricFamily, error) {
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err == nil && len(families) == 0 {
		err = errors.New("the page has no metrics")
	}
	return families, err
}

// The page of a program has the metrics of yare and those of the registry, each once.
func TestGather(t *testing.T) {
	t.Parallel()
	for program, logged := range map[string]string{
		"gather": "", "late": "the metric yare_leader is one of yare and one of the registry", "failing": "there is no database",
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			p, address := start(t, program)
			var families map[string]*dto.MetricFamily
			yaretest.Eventually(t, func() (err error) {
				if families, err = readPage(address); err != nil {
					return err
				}
				if logged != "" && !strings.Contains(strings.Join(p.Log(), "\n"), logged) {
					return fmt.Errorf("the log has no %q", logged)
				}
				return nil
			})
			// go_threads is only in the registry.
			for _, name := range []string{"yare_build_info", "go_goroutines", "go_threads", "process_start_time_seconds", "orders_total"} {
				if n := len(families[name].GetMetric()); n != 1 {
					t.Errorf("%d series of %s", n, name)
				}
			}
			if help := families["yare_leader"].GetHelp(); help == "Mine." {
				t.Error("the metric of the registry has taken the place of yare_leader")
			}
			if orders := families["orders_total"].GetMetric(); len(orders) == 1 && (orders[0].GetCounter().GetValue() != 7 || orders[0].GetLabel()[0].GetValue() != `a "b"`) {
				t.Errorf("orders_total is %v", orders)
			}
			if status := p.Interrupt(t); status != 0 {
				t.Errorf("the status is %d", status)
			}
		})
	}
}

// A program does not start if a metric of the registry has a name of yare.
func TestGatherConflicts(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "--listen", "127.0.0.1:0", "--kubeconfig", nowhere(t))
	cmd.Env = append(os.Environ(), programVariable+"=conflict")
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.ExitCode(); status != 1 {
		t.Errorf("status %d: %s", status, out)
	}
	for _, name := range []string{"yare_build_info", "yare_reconciles_total"} {
		if want := "the metric " + name + " is one of yare and one of the registry: rename"; !strings.Contains(string(out), want) {
			t.Errorf("the program does not report %q: %s", want, out)
		}
	}
}

// A registry has the metrics of a program that serves nothing, beside the collectors of the process.
func TestCollector(t *testing.T) {
	t.Parallel()
	collector, part := prometheus.NewCollector()
	registry := newRegistry(collector)
	if n, err := testutil.GatherAndCount(registry, "yare_build_info"); n != 0 || err != nil {
		t.Errorf("before the start: %d, %v", n, err)
	}
	read := operator.Task("read", func(context.Context, *controller.Runtime) error {
		for _, name := range []string{"yare_build_info", "yare_leader", "go_goroutines", "process_start_time_seconds", "orders_total"} {
			if n, err := testutil.GatherAndCount(registry, name); n != 1 || err != nil {
				t.Errorf("%s: %d series, %v", name, n, err)
			}
		}
		return nil
	})
	if err := operator.Run(t.Context(), noServer(), read, part); err != nil {
		t.Error(err)
	}
}

// text is the page of a program.
type text string

func (s text) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(s))
	return int64(n), err
}

// Each kind of metric keeps its values and its labels.
func TestCollectorKeepsValues(t *testing.T) {
	t.Parallel()
	const page = `# HELP yare_a_seconds A \\ histogram.
# TYPE yare_a_seconds histogram
yare_a_seconds_bucket{verb="get",resource="pods",le="0.5"} 1
yare_a_seconds_bucket{verb="get",resource="pods",le="+Inf"} 3
yare_a_seconds_sum{verb="get",resource="pods"} 4.5
yare_a_seconds_count{verb="get",resource="pods"} 3
# HELP yare_b_total A counter.
# TYPE yare_b_total counter
yare_b_total{name="a \"b\""} 7
# HELP yare_c A gauge.
# TYPE yare_c gauge
yare_c -1.5
`
	collector, part := prometheus.NewCollector()
	joiner := part.(operator.MetricsJoiner)
	if further, err := joiner.JoinMetrics(text(page + "# TYPE go_goroutines gauge\ngo_goroutines 7\n")); further != nil || err != nil {
		t.Fatal("the collector adds to the page", err)
	}
	if err := testutil.CollectAndCompare(collector, strings.NewReader(strings.ReplaceAll(page, `verb="get",resource="pods"`, `resource="pods",verb="get"`))); err != nil {
		t.Error(err)
	}
	if _, err := joiner.JoinMetrics(text("not { a page")); err != nil {
		t.Fatal(err)
	}
	registry := client.NewRegistry()
	registry.MustRegister(collector)
	if _, err := registry.Gather(); err == nil {
		t.Error("a page that cannot be read is no error of the registry")
	}
}
