package plane

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// KubernetesVariable is the environment variable with the minor version of Kubernetes of the control planes that are
// started. An option or a flag wins.
const KubernetesVariable = "YARE_KUBERNETES"

// emulatedMinors is how many minor versions an API server can emulate below its own: see
// https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/#options.
const emulatedMinors = 3

// Minors returns the minor versions of Kubernetes that a control plane can have, the oldest first. The last one is the
// default. The module of the control plane has the requirements of each other one in a file such as kubernetes-1.36.mod.
func Minors() []string { return []string{"1.35", "1.36", "1.37"} }

// DefaultMinor returns the minor version that a control plane has by default.
func DefaultMinor() string {
	minors := Minors()
	return minors[len(minors)-1]
}

// CheckMinor returns an error unless a control plane can have this minor version.
func CheckMinor(minor string) error {
	if slices.Contains(Minors(), minor) {
		return nil
	}
	hint := ""
	if strings.Count(minor, ".") > 1 || strings.HasPrefix(minor, "v") {
		hint = ": give a minor version, such as " + DefaultMinor()
	}
	return fmt.Errorf("there is no control plane of Kubernetes %q%s: this yare has %s and %s, which is the default",
		minor, hint, strings.Join(Minors()[:len(Minors())-1], ", "), DefaultMinor())
}

// CheckEmulated returns an error unless the default control plane can emulate this minor version.
func CheckEmulated(minor string) error {
	newest, _ := strconv.Atoi(strings.TrimPrefix(DefaultMinor(), "1."))
	number, err := strconv.Atoi(strings.TrimPrefix(minor, "1."))
	if err != nil || "1."+strconv.Itoa(number) != minor || number < newest-emulatedMinors || number > newest {
		return fmt.Errorf("the control plane of Kubernetes %s cannot emulate %q: it emulates 1.%d to %s",
			DefaultMinor(), minor, newest-emulatedMinors, DefaultMinor())
	}
	return nil
}

// checkMinorOf returns an error unless there is a control plane of the minor version, and it can emulate what is asked for.
func checkMinorOf(o *Options) error {
	minor := cmp.Or(o.Finder.Kubernetes, o.Finder.environ().value(KubernetesVariable))
	if minor == DefaultMinor() {
		minor = ""
	}
	switch {
	case minor != "" && CheckMinor(minor) != nil:
		return CheckMinor(minor)
	case minor != "" && o.RealNode:
		return fmt.Errorf("a real node has Kubernetes %s, and %s is asked for: leave one of both out", DefaultMinor(), minor)
	case o.Emulate == "":
		return nil
	case minor != "":
		return fmt.Errorf("the control plane of Kubernetes %s emulates other versions, and %s is asked for: leave one of both out", DefaultMinor(), minor)
	}
	return CheckEmulated(o.Emulate)
}

// NotBuiltError is the error of a [Finder] that must not build.
type NotBuiltError struct {
	Module Module
	Minor  string
}

func (e *NotBuiltError) Error() string {
	return fmt.Sprintf("%s of Kubernetes %s is not compiled yet, which takes minutes, and a test compiles only the default: run `go run %s/cmd/yare up --kubernetes %s` once",
		e.Module.Title, e.Minor, ModulePath, e.Minor)
}
