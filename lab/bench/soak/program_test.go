package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/yaretest"
)

// program is the operator's process.
type program struct {
	cmd *exec.Cmd
	// metrics is the URL of its metrics.
	metrics string
	// log is the path of its log.
	log string
	// done is closed when the process has ended.
	done chan struct{}
}

// startProgram starts the operator. Its API server is the session of a proxy.
func startProgram(t *testing.T, session *proxy.Session, namespace string) *program {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, address := filepath.Join(dir, "kubeconfig"), freeAddress(t)
	if err := os.WriteFile(kubeconfig, session.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &program{metrics: "http://" + address + "/metrics", log: filepath.Join(dir, "operator.log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has its own copy
	p.cmd = exec.CommandContext(t.Context(), yaretest.Build(t, "./operator"), "--kubeconfig", kubeconfig, "--watch-namespace", namespace, "--listen", address)
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // cmd.ProcessState has the result
	}()
	t.Cleanup(func() { <-p.done })
	return p
}

// freeAddress returns an address on the loopback interface that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// endError returns an error with the end of the log if the operator has ended, or else nil.
func (p *program) endError() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	text, _ := os.ReadFile(p.log) // without its log, the error is still an error
	return fmt.Errorf("the operator has ended: %s\n%s", p.cmd.ProcessState, text[max(0, len(text)-4000):])
}

// sample is the resource use of the operator's process at one time.
type sample struct {
	// Second is the time since the first change.
	Second float64 `json:"second"`
	// Resident is the resident memory, and Heap the memory of the objects on the Go heap that the last
	// garbage collection found live. Both are bytes.
	Resident float64 `json:"resident"`
	Heap     float64 `json:"heap"`
	// Goroutines, Files and Sockets are numbers. Files are the open file descriptors, sockets included.
	Goroutines float64 `json:"goroutines"`
	Files      float64 `json:"files"`
	Sockets    float64 `json:"sockets"`
	// Objects is the number of objects in the cache, and Reconciles is the number of reconciles so far.
	Objects    float64 `json:"objects"`
	Reconciles float64 `json:"reconciles"`
	// CPU is the processor time in seconds so far.
	CPU float64 `json:"cpu"`
}

// String returns the sample in short.
func (s sample) String() string {
	return fmt.Sprintf("%.1f MB resident, %.1f MB live on the heap, %.0f goroutines, %.0f sockets, %.0f objects, %.0f reconciles",
		s.Resident/1e6, s.Heap/1e6, s.Goroutines, s.Sockets, s.Objects, s.Reconciles)
}

// sample samples the process by its metrics and by /proc.
func (p *program) sample(ctx context.Context) (sample, error) {
	values, err := p.readMetrics(ctx)
	if err != nil {
		return sample{}, err
	}
	s := sample{
		Heap: values["go_gc_heap_live_bytes"], Goroutines: values["go_goroutines"],
		Objects: values["yare_stream_objects"], Reconciles: values["yare_reconciles_total"], CPU: values["process_cpu_seconds_total"],
	}
	folder := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	if s.Resident, err = residentMemory(folder + "status"); err != nil {
		return sample{}, err
	}
	files, err := os.ReadDir(folder + "fd")
	if err != nil {
		return sample{}, err
	}
	s.Files = float64(len(files))
	for _, each := range files {
		if target, err := os.Readlink(folder + "fd/" + each.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			s.Sockets++
		}
	}
	return s, nil
}

// readMetrics returns the metrics by their names, summed up over all labels.
func (p *program) readMetrics(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true // no connection stays open in the operator
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New("metrics: " + response.Status)
	}
	return parseMetrics(response.Body)
}

// parseMetrics reads the text format of Prometheus.
func parseMetrics(text io.Reader) (map[string]float64, error) {
	values := make(map[string]float64)
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Text()
		space := strings.LastIndexByte(line, ' ')
		if space < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		value, err := strconv.ParseFloat(line[space+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q has no number", line)
		}
		name, _, _ := strings.Cut(line[:space], "{")
		values[name] += value
	}
	return values, lines.Err()
}

// residentMemory returns the resident memory in a file such as /proc/1/status, in bytes.
func residentMemory(path string) (float64, error) {
	status, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return 1024 * kilobytes, err
		}
	}
	return 0, fmt.Errorf("%s has no resident memory", path)
}

func TestMetricsAreSummedUp(t *testing.T) {
	t.Parallel()
	values, err := parseMetrics(strings.NewReader("# TYPE a gauge\na 1\nb{x=\"} \"} 2\nb{x=\"z\"} 3e1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]float64{"a": 1, "b": 32}; !maps.Equal(values, want) {
		t.Errorf("the metrics are %v, not %v", values, want)
	}
}
