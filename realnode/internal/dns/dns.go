// Package dns answers questions about the names of Services, for the Pods of one node. It serves
// the cluster only: names outside of the cluster have no address here.
package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/yare-go/yare/realnode/internal/layout"
)

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

// zone finds the addresses of names.
type zone struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// answer holds the addresses or the alias of a name.
type answer struct {
	exists    bool
	addresses []netip.Addr
	// alias is another name, if the name stands for that name.
	alias string
}

// lookup returns the answer for a name, such as web.default.svc.cluster.local.
func (z *zone) lookup(name string) answer {
	rest, found := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), ".svc."+layout.Domain)
	if !found {
		return answer{}
	}
	parts := strings.Split(rest, ".")
	host := ""
	switch len(parts) {
	case 2:
	case 3: // a Pod behind a headless Service
		host, parts = parts[0], parts[1:]
	default:
		return answer{}
	}
	service, err := z.services.Services(parts[1]).Get(parts[0])
	if err != nil {
		return answer{}
	}
	switch {
	case service.Spec.Type == corev1.ServiceTypeExternalName && host == "":
		return answer{exists: true, alias: strings.TrimSuffix(service.Spec.ExternalName, ".") + "."}
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		addresses := z.endpoints(service, host)
		return answer{exists: host == "" || len(addresses) > 0, addresses: addresses}
	case host != "":
		return answer{}
	}
	var addresses []netip.Addr
	for _, ip := range service.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(ip); err == nil {
			addresses = append(addresses, address)
		}
	}
	return answer{exists: true, addresses: addresses}
}

// endpoints returns the addresses of the ready Pods of a headless Service, and of its other Pods too if the
// Service publishes them. If host is not empty, only the Pods with this host name count.
func (z *zone) endpoints(service *corev1.Service, host string) []netip.Addr {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	slices, err := z.slices.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, slice := range slices {
		for _, endpoint := range slice.Endpoints {
			isReady := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			if !isReady && !service.Spec.PublishNotReadyAddresses {
				continue
			}
			if host != "" && (endpoint.Hostname == nil || *endpoint.Hostname != host) {
				continue
			}
			for _, ip := range endpoint.Addresses {
				if address, err := netip.ParseAddr(ip); err == nil {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return addresses
}
