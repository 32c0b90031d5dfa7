package operator_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/yare-go/yare/operator"
)

// Bad flags are errors before any request.
func TestFlagsOfMigrate(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--rate", "0"}, {"--rate", "x"}, {"--rate", "1001"}, {"--remove-version", "V 2"}, {"--delete-objects"}, {"argument"}} {
		status, _, stderr := operator.Call(append([]string{"migrate"}, args...), lanternConverter())
		if status != 2 || !strings.Contains(stderr, "gadgets --help") {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
}

// A first argument without a flag made the commands with flags of the program panic.
func TestArgumentsWithoutFlags(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"manifests", "uninstall", "migrate"} {
		status, _, stderr := operator.CallProgram(t.Context(), "movers", operator.Program{Parts: func() ([]operator.Part, error) { return nil, nil }}, command, "argument")
		if status != 2 || !strings.Contains(stderr, command+` takes no argument "argument"`) {
			t.Errorf("%s: status %d, %s", command, status, stderr)
		}
	}
}

// A program can have a flag with the name of a flag of migrate.
func TestOwnFlagsOfMigrate(t *testing.T) {
	t.Parallel()
	rate := ""
	program := operator.Program{
		Flags: func(flags *flag.FlagSet) { flags.StringVar(&rate, "rate", "", "a rate of the program") },
		Parts: func() ([]operator.Part, error) { return nil, errors.New("the rate is " + rate) },
	}
	status, _, stderr := operator.CallProgram(t.Context(), "movers", program, "migrate", "--rate", "20", "--", "--rate", "fast")
	if status != 1 || !strings.Contains(stderr, "the rate is fast") {
		t.Errorf("status %d, %s", status, stderr)
	}
}
