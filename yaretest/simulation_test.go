package yaretest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/yaretest"
)

// The control plane is a module of its own, with constants of its own for the same annotations.
func TestSimulationConstantsAreThoseOfTheControlPlane(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"OutcomeAnnotation":        yaretest.SimulateOutcome,
		"ReadyAfterAnnotation":     yaretest.SimulateReadyAfter,
		"CompleteAfterAnnotation":  yaretest.SimulateCompleteAfter,
		"TerminateAfterAnnotation": yaretest.SimulateTerminateAfter,
		"ExitCodeAnnotation":       yaretest.SimulateExitCode,
		"Succeed":                  "",
		"Fail":                     yaretest.OutcomeFail,
		"CrashLoop":                yaretest.OutcomeCrashLoop,
		"Pending":                  yaretest.OutcomePending,
	}
	got := stringConstants(t, "../controlplane/internal/kubelet/lifecycle/settings.go")
	maps.DeleteFunc(got, func(name, _ string) bool { return name == "Prefix" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-yaretest +controlplane):\n%s", diff)
	}
}

// stringConstants returns the exported constants of a Go file that are strings.
func stringConstants(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	var evaluate func(e ast.Expr) (string, bool)
	evaluate = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(e.Value)
			return text, err == nil && e.Kind == token.STRING
		case *ast.Ident:
			text, ok := values[e.Name]
			return text, ok
		case *ast.BinaryExpr:
			x, okX := evaluate(e.X)
			y, okY := evaluate(e.Y)
			return x + y, okX && okY && e.Op == token.ADD
		}
		return "", false
	}
	for _, declaration := range parsed.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			constant := spec.(*ast.ValueSpec)
			for i, name := range constant.Names {
				if text, ok := evaluate(constant.Values[i]); ok && name.IsExported() {
					values[name.Name] = text
				}
			}
		}
	}
	return values
}
