// Package dns answers questions about the names of Services, for the Pods of one node. It serves
// the cluster only: names outside of the cluster have no address here.
package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// streamTimeout is how long a TCP client may be silent.
const streamTimeout = 30 * time.Second

// Server is a DNS server.
type Server struct {
	packets net.PacketConn
	stream  net.Listener
}

// Listen makes a server that listens on the DNS port of an address, over UDP and TCP. The caller
// must call Run.
func Listen(address netip.Addr) (*Server, error) {
	const port = 53
	target := netip.AddrPortFrom(address, port).String()
	packets, err := net.ListenPacket("udp4", target)
	if err != nil {
		return nil, fmt.Errorf("listen for questions about names: %w", err)
	}
	stream, err := net.Listen("tcp4", target)
	if err != nil {
		_ = packets.Close()
		return nil, fmt.Errorf("listen for questions about names: %w", err)
	}
	return &Server{packets: packets, stream: stream}, nil
}

// Run answers questions about the Services of a cluster until ctx ends.
func (s *Server) Run(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	z := &zone{
		services: factory.Core().V1().Services().Lister(),
		slices:   factory.Discovery().V1().EndpointSlices().Lister(),
	}
	defer factory.Shutdown() // it waits for the end of ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	synced := []cache.InformerSynced{
		factory.Core().V1().Services().Informer().HasSynced,
		factory.Discovery().V1().EndpointSlices().Informer().HasSynced,
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		s.close()
		return nil
	}
	return s.serve(ctx, z)
}

// serve answers questions about a zone until ctx ends.
func (s *Server) serve(ctx context.Context, z *zone) error {
	servers := []*dns.Server{
		{PacketConn: s.packets, Handler: z},
		{Listener: s.stream, Handler: z, IdleTimeout: func() time.Duration { return streamTimeout }},
	}
	ended := make(chan error, len(servers))
	for _, each := range servers {
		go func() { ended <- each.ActivateAndServe() }()
	}
	stop := context.AfterFunc(ctx, func() {
		for _, each := range servers {
			_ = each.Shutdown() // a server that has not begun yet ends because its socket is closed
		}
		s.close()
	})
	defer stop()
	var errs []error
	for range servers {
		errs = append(errs, <-ended)
		if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
			return fmt.Errorf("answer questions about names: %w", err)
		}
	}
	return nil
}

// close closes both sockets.
func (s *Server) close() {
	_ = s.packets.Close()
	_ = s.stream.Close()
}
