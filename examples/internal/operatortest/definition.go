package operatortest

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var isUpdate = flag.Bool("update", false, "write crd.yaml anew")

// checkDefinition fails t unless crd.yaml is the output of the program.
func checkDefinition(t *testing.T, program string) {
	t.Helper()
	printed := printedDefinition(t, program)
	if *isUpdate {
		if err := os.WriteFile("crd.yaml", []byte(printed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile("crd.yaml")
	if err != nil {
		t.Fatalf("%v: write it with go test -update", err)
	}
	if !bytes.Equal(kept, []byte(printed)) {
		t.Errorf("crd.yaml is not what the program prints; write it anew with go test -update:\n%s",
			cmp.Diff(strings.Split(string(kept), "\n"), strings.Split(printed, "\n")))
	}
}

// printedDefinition returns the definition that the program prints. A warning about the definition fails t.
func printedDefinition(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program, "crd")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 { // the examples have nothing that generators of clients lose
		t.Fatalf("%s crd: %v\n%s", program, err, &stderr)
	}
	return string(out)
}
