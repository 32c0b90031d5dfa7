package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/yare-go/yare/internal/access"
)

// Operator describes the process of an operator that is developed, tested or measured.
type Operator struct {
	Path string
	Args []string
	// Kubeconfig is the path of the kubeconfig by which the operator finds its cluster.
	Kubeconfig string
	// Env is added to the environment of this process.
	Env []string
	// Stdout and Stderr receive the output. They may be nil.
	Stdout, Stderr io.Writer
}

// Start starts the operator. An operator made with yare fails requests that none of its parts declares.
// The operator is killed when this process dies.
func (o Operator) Start() (*Process, error) {
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+o.Kubeconfig, access.CheckVariable+"=1"), o.Env...)
	cmd.Stdout, cmd.Stderr = o.Stdout, o.Stderr
	p, err := Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("start the operator %s: %w", o.Path, err)
	}
	return p, nil
}
