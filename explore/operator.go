package explore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/internal/plane/process"
	"github.com/yare-go/yare/operator"
)

// Operator is an operator that [Run] explores: [Parts] or a [Binary].
type Operator interface {
	// open compiles the operator into a folder if necessary.
	open(ctx context.Context, folder string) (openedOperator, error)
}

// openedOperator is an operator that can be started.
type openedOperator struct {
	launcher engine.Launcher
	// installed are the objects to install before, as YAML documents.
	installed []byte
	// policies are the admission policies to apply before.
	policies []unstructured.Unstructured
	// sampleFile is the default file of the samples.
	sampleFile string
}

// Parts returns the operator made of the parts that a function returns. The function may have arguments: the namespace
// of the run, and the address by which the parts reach the external system of Settings.OutsideAddress. A process of the
// operator is a call of the function, and runs in the process of the test. A crash cuts the parts off from the API
// server for good. The types of the parts must be defined: see [yaretest.Define].
func Parts[F func() []operator.Part | func(namespace string) []operator.Part | func(namespace, outside string) []operator.Part](parts F) Operator {
	switch parts := any(parts).(type) {
	case func() []operator.Part:
		return partsOperator{func(string, string) []operator.Part { return parts() }}
	case func(string) []operator.Part:
		return partsOperator{func(namespace, _ string) []operator.Part { return parts(namespace) }}
	case func(string, string) []operator.Part:
		return partsOperator{parts}
	}
	panic("explore.Parts: the constraint allows no other type")
}

type partsOperator struct {
	parts func(namespace, outside string) []operator.Part
}

func (p partsOperator) open(context.Context, string) (openedOperator, error) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
	policies := policy.OfParts(p.parts(metav1.NamespaceDefault, ""), metav1.NamespaceDefault)
	return openedOperator{launcher: engine.RunParts(name, p.parts), policies: policies, sampleFile: "sample.yaml"}, nil
}

// Binary is an operator that is a program. The program need not use yare.
type Binary struct {
	// Path is the folder of a Go main package, such as ".", which is compiled, or a compiled program.
	Path string
	// Args and Env are the arguments, and additions to the environment. {kubeconfig}, {namespace}, {outside} and
	// {port1} to {port9} are filled in. Env has entries NAME=VALUE. An entry NAME passes the variable of this process on.
	// The rest of the environment is PATH, KUBECONFIG, POD_NAMESPACE, and a HOME and a TMPDIR of the run.
	Args, Env []string
	// Install are files of objects that are applied before, such as CustomResourceDefinitions, or folders of
	// such files. Default: the objects that the program prints with its command crd, and the admission policies that
	// it prints with manifests. Programs that use yare have these commands.
	Install []string
	// Account is the ServiceAccount whose permissions the requests of the program have, as NAMESPACE/NAME. The
	// permissions are those of its ClusterRoleBindings and, in the namespace of each run, those of its
	// RoleBindings in the namespace of the account. All other requests are refused with 403. Default: the
	// permissions of an administrator. A program that uses yare refuses the requests not declared by its parts.
	Account string
	// Cover counts the statements of the program that run: see [Coverage]. Path is a folder then. A process
	// that ends in a crash is not counted.
	Cover bool
}

func (b Binary) open(ctx context.Context, folder string) (o openedOperator, err error) {
	binary := engine.Binary{Args: b.Args, Env: b.Env}
	if b.Account != "" {
		if binary.Account, err = engine.ParseAccount(b.Account); err != nil {
			return o, err
		}
	}
	if binary.Path, err = filepath.Abs(b.Path); err != nil {
		return o, err
	}
	info, err := os.Stat(b.Path)
	switch {
	case err != nil:
		return o, err
	case info.IsDir():
		o.sampleFile = filepath.Join(b.Path, "sample.yaml")
		binary.Path = filepath.Join(folder, filepath.Base(binary.Path))
		if b.Cover {
			binary.CoverFolder = filepath.Join(folder, "cover")
		}
		if err := compile(ctx, b.Path, binary.Path, binary.CoverFolder); err != nil {
			return o, err
		}
	case b.Cover:
		return o, fmt.Errorf(
			"the statements of %s cannot be counted, because it is compiled already: name the folder of its main package",
			b.Path)
	default:
		o.sampleFile = filepath.Join(filepath.Dir(b.Path), "sample.yaml")
	}
	o.launcher = binary
	if len(b.Install) > 0 {
		o.installed, err = engine.ReadInstall(b.Install)
		return o, err
	}
	if o.installed, err = binary.CRDs(ctx); err != nil {
		return o, err
	}
	o.policies, err = binary.Policies(ctx)
	return o, err
}

// compile compiles the main package in a folder. If coverFolder is not empty, the program counts the statements
// that run, and compile makes the folder.
func compile(ctx context.Context, folder, output, coverFolder string) error {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", output)
	if coverFolder != "" {
		if err := os.Mkdir(coverFolder, 0o700); err != nil {
			return err
		}
		cmd.Args = append(cmd.Args, "-cover")
	}
	cmd.Args = append(cmd.Args, ".")
	cmd.Dir = folder
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := process.Run(ctx, cmd); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, text.String())
	}
	return nil
}
