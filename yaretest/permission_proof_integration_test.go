package yaretest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/yare-go/yare/yaretest"
)

// superfluousVariable is set in the process in which TestPermissionProof makes a proof that must fail.
const superfluousVariable = "YARETEST_SUPERFLUOUS"

// A proof fails if the program declares more than it needs. Users could prove that no permission is missing, and not
// that none is superfluous.
func TestPermissionProof(t *testing.T) {
	t.Parallel()
	if os.Getenv(superfluousVariable) != "" {
		yaretest.PermissionProof{Program: yaretest.Build(t, "testdata/superfluous"), Use: func(t *testing.T, run *yaretest.PermissionRun) {
			process := yaretest.Run(t, run.Proxy.Kubeconfig(), run.Program, append(run.Args, "-v")...)
			process.WaitForLog(t, "reconciled")
			process.Interrupt(t)
		}}.Run(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPermissionProof$", "-test.v")
	cmd.Env = append(os.Environ(), superfluousVariable+"=1", "YARETEST_KUBECONFIG"+"=") // it starts control planes
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the proof of a program with superfluous permissions passes")
	}
	for _, want := range []string{
		"it declares and does not ask for delete configmaps\n",
		"it prints a wildcard, of which nobody can prove that the program needs all of it: * secrets\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	for _, wrong := range []string{"does not ask for list", "does not ask for watch", "does not ask for get", "it does not declare"} {
		if strings.Contains(string(out), wrong) {
			t.Errorf("the output has %q", wrong)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
