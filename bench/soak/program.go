package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// program is the operator's process.
type program struct {
	process *process.Process
	// metrics is the URL of its metrics.
	metrics string
	// log is the path of its log.
	log string
}

// startProgram starts the operator with a kubeconfig.
func startProgram(binary, kubeconfig, dir string) (*program, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &program{metrics: "http://" + address + "/metrics", log: filepath.Join(dir, "operator.log")}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own copy
	cmd := exec.Command(binary, "--kubeconfig", kubeconfig, "--watch-namespace", namespace, "--listen", address)
	cmd.Stderr = out
	p.process, err = process.Start(cmd, syscall.SIGKILL)
	return p, err
}

// freeAddress returns an address on the loopback interface that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (p *program) kill() { p.process.Stop(syscall.SIGKILL, false, time.Second) }

// ended returns an error with the end of the log if the operator has ended.
func (p *program) ended() error {
	select {
	case <-p.process.Done():
	default:
		return nil
	}
	text, _ := os.ReadFile(p.log) // without its log, the error is still an error
	if len(text) > 4000 {
		text = text[len(text)-4000:]
	}
	err := p.process.Err()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("the operator has ended: %w\n%s", err, text)
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
	folder := fmt.Sprintf("/proc/%d/", p.process.Pid())
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
