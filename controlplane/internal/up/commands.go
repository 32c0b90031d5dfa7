package up

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/controlplane/internal/control"
	"github.com/yare-go/yare/controlplane/internal/etcdclient"
	"github.com/yare-go/yare/controlplane/internal/layout"
	"github.com/yare-go/yare/controlplane/internal/supervise"
)

// compactTimeout bounds a compaction, because a paused etcd never answers.
const compactTimeout = 10 * time.Second

// commands carries out the requests of a program on standard input.
type commands struct {
	output   *control.Writer
	requests chan control.Request
	shutdown context.CancelCauseFunc
}

func newCommands(output *control.Writer, shutdown context.CancelCauseFunc) *commands {
	return &commands{output: output, requests: make(chan control.Request, 64), shutdown: shutdown}
}

// read reads requests until the input ends, and then ends the plane.
func (c *commands) read(stdin io.Reader) {
	defer c.shutdown(fmt.Errorf("the standard input has ended: %w", context.Canceled))
	_ = control.Requests(stdin, c.output, func(r control.Request) {
		if r.Do == control.Shutdown {
			c.output.Write(control.Answer{ID: r.ID, OK: true})
			c.shutdown(fmt.Errorf("received the request shutdown: %w", context.Canceled))
			return
		}
		c.requests <- r
	})
}

// serve carries out requests until the context ends. Requests for one component are carried
// out in their order, and requests for different components at the same time.
func (c *commands) serve(ctx context.Context, p *layout.Plane, components []*supervise.Component) {
	byName := map[string]*supervise.Component{}
	for _, component := range components {
		byName[component.Name()] = component
	}
	var compactions sync.WaitGroup
	defer compactions.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-c.requests:
			if r.Do == control.Compact {
				compactions.Go(func() { c.compact(ctx, r, p.EtcdEndpoint()) })
				continue
			}
			c.dispatch(r, byName)
		}
	}
}

// dispatch hands a request to the component that it is about.
func (c *commands) dispatch(r control.Request, components map[string]*supervise.Component) {
	verb := supervise.Verb(r.Do)
	if !verb.IsValid() {
		c.answer(r, fmt.Errorf("unknown verb %q: want start, stop, kill, restart, pause, resume, compact or shutdown", r.Do),
			0)
		return
	}
	component, found := components[r.Component]
	if !found {
		c.answer(r, fmt.Errorf("unknown component %q: want one of %s", r.Component, strings.Join(layout.Components(), ", ")),
			0)
		return
	}
	component.Enqueue(verb, func(pid int, err error) { c.answer(r, err, pid) })
}

func (c *commands) compact(ctx context.Context, r control.Request, endpoint string) {
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	revision, err := etcdclient.Compact(ctx, endpoint)
	if err != nil {
		c.answer(r, err, 0)
		return
	}
	c.output.Write(control.Answer{ID: r.ID, OK: true, Revision: revision})
}

func (c *commands) answer(r control.Request, err error, pid int) {
	if err != nil {
		c.output.Write(control.Answer{ID: r.ID, Error: err.Error()})
		return
	}
	c.output.Write(control.Answer{ID: r.ID, OK: true, PID: pid})
}
