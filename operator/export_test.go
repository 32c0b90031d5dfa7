package operator

import (
	"context"
	"time"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/internal/follow"
)

// Package yaretest imports this package. The tests that use yaretest are in package
// operator_test. They share these names with the tests in this package.
type Gadget = gadget

var (
	Nowhere      = nowhere
	Ask          = ask
	LeaderObject = leaderObject
	LeaseAccess  = leaseAccess
	Call         = call
	Idle         = idle
	CheckText    = checkText
	Documents    = documents
	DeploymentOf = deploymentOf
	NoServer     = noServer
	PartOf       = part
	Read         = read
	RunLeader    = runLeader
	Programs     = programs
)

// NewProgramMetrics returns the metrics of a program without features.
func NewProgramMetrics() *metrics.Registry {
	m := newProgramMetrics(nil)
	registerStreamMetrics(m.registry, func() []cache.Stats { return nil }, func() []follow.StreamState { return nil })
	registerCertificates(m.registry, map[string]func() (time.Time, error){"pages": func() (time.Time, error) { return time.Now(), nil }})
	return m.registry
}

// CallProgram runs a program of that name with args, in this process, and returns its status and output.
func CallProgram(ctx context.Context, name string, p Program, args ...string) (status int, stdout, stderr string) {
	var out, errs sharedBuffer
	status = invocation{Program: p, file: name, stdout: &out, stderr: &errs}.execute(ctx, args)
	return status, out.String(), errs.String()
}

const (
	LeaderAgent   = leaderAgent
	LeaderObjects = leaderObjects
)

// ParseArgs returns what is wrong with the arguments of a program.
func ParseArgs(args []string) error {
	line, err := newCommandLine("gadgets", nil)
	if err == nil {
		err = line.parse(args)
	}
	return err
}
