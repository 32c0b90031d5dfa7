package yaretest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/yaretest"
)

// The control plane is a module of its own, with constants of its own for the same annotations.
func TestSimulationIsUnderstoodByTheControlPlane(t *testing.T) {
	t.Parallel()
	constants := stringConstants(t, "../controlplane/internal/kubelet/lifecycle/settings.go")
	for _, test := range []struct {
		simulation yaretest.Simulation
		want       map[string]string
	}{
		{yaretest.Simulation{}, map[string]string{}},
		{yaretest.Simulation{StaysPending: true}, map[string]string{constants["OutcomeAnnotation"]: constants["Pending"]}},
		{yaretest.Simulation{CrashLoops: true}, map[string]string{constants["OutcomeAnnotation"]: constants["CrashLoop"]}},
		{yaretest.Simulation{Fails: true, ExitCode: 3}, map[string]string{constants["OutcomeAnnotation"]: constants["Fail"], constants["ExitCodeAnnotation"]: "3"}},
		{
			yaretest.Simulation{ReadyAfter: 3 * time.Second, CompleteAfter: time.Hour, TerminateAfter: 90 * time.Second},
			map[string]string{constants["ReadyAfterAnnotation"]: "3s", constants["CompleteAfterAnnotation"]: "1h0m0s", constants["TerminateAfterAnnotation"]: "1m30s"},
		},
	} {
		if diff := cmp.Diff(test.want, test.simulation.Annotations()); diff != "" {
			t.Errorf("%+v (-controlplane +yaretest):\n%s", test.simulation, diff)
		}
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
