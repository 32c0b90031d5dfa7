package public

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/explore"
)

// The environment variables of the tests.
const (
	// publicVariable is set to run the tests.
	publicVariable = "YARE_PUBLIC"
	// budgetVariable is how long each test begins new runs. Default: defaultBudget.
	budgetVariable = "YARE_PUBLIC_BUDGET"
)

const defaultBudget = 15 * time.Minute

// The Prometheus operator leaves the same objects under each fault.
func TestPrometheusOperator(t *testing.T) {
	const folder, module = "prometheusoperator", "github.com/prometheus-operator/prometheus-operator"
	budget := budgetOf(t)
	explore.Run(t, explore.Binary{
		Path:    compile(t, folder, module+"/cmd/operator"),
		Args:    []string{"--namespaces={namespace}", "--web.listen-address=127.0.0.1:{port1}"},
		Install: []string{filepath.Join(sourceOf(t, folder, module), "example", "prometheus-operator-crd")},
	}, explore.Settings{
		SampleFile: filepath.Join(folder, "sample.yaml"),
		Budget:     budget,
		Ignore: map[string]string{
			"statefulsets.apps/* metadata.annotations.prometheus-operator-input-hash": "the operator hashes metadata.generation, which counts the changes of the user",
		},
	})
}

// budgetOf returns how long a test begins new runs, or skips it.
func budgetOf(t *testing.T) time.Duration {
	t.Helper()
	if os.Getenv(publicVariable) == "" {
		t.Skipf("%s=1 is not set: the test compiles an operator of others", publicVariable)
	}
	text := os.Getenv(budgetVariable)
	if text == "" {
		return defaultBudget
	}
	budget, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", budgetVariable, err)
	}
	return budget
}

// compile compiles a main package in the module of a folder, and returns the path of the program.
func compile(t *testing.T, folder, path string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), folder)
	run(t, folder, append(append([]string{"build", "-o", program}, flags...), path)...)
	return program
}

// sourceOf returns the folder of the source of a module that the module of a folder requires.
func sourceOf(t *testing.T, folder, module string) string {
	t.Helper()
	return run(t, folder, "list", "-m", "-f", "{{.Dir}}", module)
}

// run runs the go command in a folder, and returns what it prints.
func run(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return strings.TrimSpace(string(out))
}
