package plane

import (
	"os"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/fakeplane"
)

func fakeNodeBinary(t *testing.T) string {
	t.Helper()
	name, err := fakeplane.LinkNode(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// The control plane gets no simulated nodes, and what its API server needs to reach the real one.
// Both end together.
func TestRealNodeJoinsThePlane(t *testing.T) {
	t.Parallel()
	var output safeBuffer
	p, err := Start(t.Context(), Options{
		Binary: fakeBinary(t), RealNode: true, NodeBinary: fakeNodeBinary(t), Images: []string{"webapp.tar"},
		Console: console.New(&output, "yare"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	text, err := os.ReadFile(p.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--nodes 0", "--apiserver-arg " + fakeplane.NodeArg} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the control plane was not started with %s:\n%s", want, text)
		}
	}
	for _, want := range []string{"webapp.tar", "kubelet of the real node ended unexpectedly: on purpose"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("%q is not reported:\n%s", want, output.String())
		}
	}
	select {
	case <-p.NodeDone():
		t.Fatal(p.NodeErr())
	default:
	}
	pid := p.node.child.process.Pid()
	p.Close()
	if !hasEnded(pid) {
		t.Error("the node still runs")
	}
}

// A real node that cannot remove its folder was silent: the next thing that somebody saw was the folder.
func TestRealNodeThatFailsAtItsEndIsReported(t *testing.T) {
	t.Parallel()
	var output safeBuffer
	p, err := Start(t.Context(), Options{
		Binary: fakeBinary(t), RealNode: true, NodeBinary: fakeNodeBinary(t), Images: []string{"fail-at-the-end"},
		Console: console.New(&output, "yare"),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if want := "remove the link yare0: no permission"; !strings.Contains(output.String(), want) {
		t.Errorf("%q is not reported:\n%s", want, output.String())
	}
}

func TestRealNodeFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		options Options
		want    string
	}{
		{"an image that is none", Options{Images: []string{"fail"}}, "this is no image"},
		{"simulated nodes, too", Options{Nodes: 2}, "either simulated nodes or a real one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := test.options
			o.Binary, o.RealNode, o.NodeBinary = fakeBinary(t), true, fakeNodeBinary(t)
			p, err := Start(t.Context(), o)
			if err == nil {
				p.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}
