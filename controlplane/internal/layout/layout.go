package layout

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/yare-go/yare/controlplane/internal/egress"
	"github.com/yare-go/yare/controlplane/internal/process"
	"github.com/yare-go/yare/controlplane/internal/supervise"
)

// Config holds the settings of a plane.
type Config struct {
	// Executable is the path of this program.
	Executable string
	// Nodes is the number of simulated nodes.
	Nodes int
	// Emulated is the minor version of Kubernetes whose APIs and feature gates the components have. It is empty for their
	// own.
	Emulated string
	// Etcd is the URL of another program that serves the API of etcd. It is empty for an etcd of the plane.
	Etcd string
	// APIServerArgs are more arguments for kube-apiserver.
	APIServerArgs []string
	// Log receives a copy of the logs of all components. It may be nil.
	Log io.Writer
}

// Plane is a control plane, laid out but not running.
type Plane struct {
	config Config
	folder *Folder
	ports  ports
	admin  credentials
	prober *prober
}

// New chooses ports and writes the credentials into the folder.
func New(folder *Folder, config Config, now time.Time) (*Plane, error) {
	p := &Plane{config: config, folder: folder}
	var err error
	for _, port := range []*int{&p.ports.apiServer, &p.ports.scheduler} {
		if *port, err = freePort(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(folder.Join("logs"), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of logs: %w", err)
	}
	if err := os.WriteFile(folder.Join(egressFile), egress.Configuration(p.DialSocket()), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of the egress proxy: %w", err)
	}
	if p.admin, err = writeCredentials(folder, p.Server(), serviceAddress(), now); err != nil {
		return nil, err
	}
	if p.prober, err = newProber(p.admin); err != nil {
		return nil, err
	}
	return p, nil
}

// Server returns the URL of the API server.
func (p *Plane) Server() string { return localURL(p.ports.apiServer) }

// EtcdEndpoint returns the URL at which etcd serves.
func (p *Plane) EtcdEndpoint() string {
	return cmp.Or(p.config.Etcd, "unix://"+p.folder.Join(etcdSocket))
}

// DialSocket returns the path of the socket through which the API server dials.
func (p *Plane) DialSocket() string { return p.folder.Join(dialSocket) }

// Kubeconfig returns the content of the administrator's kubeconfig file.
func (p *Plane) Kubeconfig() []byte { return kubeconfig(p.Server(), p.admin) }

// Specs returns descriptions of the components, in the order of Components.
func (p *Plane) Specs() []supervise.Spec {
	ready := map[string]func(context.Context) error{
		APIServer: p.readyAt(p.Server() + "/readyz"),
		Scheduler: p.readyAt(localURL(p.ports.scheduler) + "/readyz"),
	}
	args := map[string][]string{
		Etcd:              etcdArgs(p.folder),
		APIServer:         apiServerArgs(p.folder, p.EtcdEndpoint(), p.ports, append(emulation(p.config.Emulated), p.config.APIServerArgs...)),
		ControllerManager: append(controllerManagerArgs(p.folder), emulation(p.config.Emulated)...),
		Scheduler:         append(schedulerArgs(p.folder, p.ports), emulation(p.config.Emulated)...),
		Kubelet:           kubeletArgs(p.folder, p.config.Nodes),
	}
	var specs []supervise.Spec
	for _, name := range Components() {
		if name == Etcd && p.config.Etcd != "" {
			continue
		}
		specs = append(specs, supervise.Spec{
			Name:  name,
			Ready: ready[name],
			Process: process.Spec{
				Name:       name,
				Executable: p.config.Executable,
				Args:       append([]string{name}, args[name]...),
				Dir:        p.folder.Path,
				Log:        p.LogFile(name),
				Copy:       p.config.Log,
			},
		})
	}
	return specs
}

// LogFile returns the path of the file with a component's output.
func (p *Plane) LogFile(component string) string {
	return p.folder.Join("logs", component+".log")
}

// readyAt returns a function that waits until url answers with status 200.
func (p *Plane) readyAt(url string) func(context.Context) error {
	return func(ctx context.Context) error { return waitUntil(ctx, p.prober.answersOK(url)) }
}

// WaitUsable waits until Pods can be created and will run: the default ServiceAccount exists, and the nodes are ready
// and accept Pods. It is called when all components are ready.
func (p *Plane) WaitUsable(ctx context.Context) error {
	account := p.Server() + "/api/v1/namespaces/default/serviceaccounts/default"
	if err := waitUntil(ctx, p.prober.answersOK(account)); err != nil {
		return fmt.Errorf("wait for the default ServiceAccount: %w", err)
	}
	if err := waitUntil(ctx, p.prober.nodesReady(p.Server()+"/api/v1/nodes", p.config.Nodes)); err != nil {
		return fmt.Errorf("wait for the nodes: %w", err)
	}
	return nil
}

// Ports are chosen below the ports that operating systems give to outgoing connections. So a component finds
// its port free when it is started once more.
const firstPort, lastPort = 20000, 32000

// freePort returns a port on the loopback address that nobody listens on at the moment.
func freePort() (int, error) {
	const tries = 100
	var last error
	for range tries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 in %d tries: %w", tries, last)
}
