package dns

import (
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"github.com/yare-go/yare/realnode/internal/layout"
)

// ttl is short: Services come and go while an operator is written.
const ttl = 5

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

// ServeDNS answers a question. An answer over UDP has at most 512 bytes. A client asks again over TCP for larger ones.
func (z *zone) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	response := z.respond(query)
	if _, isUDP := w.RemoteAddr().(*net.UDPAddr); isUDP {
		response.Truncate(dns.MinMsgSize)
	}
	_ = w.WriteMsg(response) // a client that got no answer asks again
}

// respond returns the response to a query. The response has no records if the name has none of the requested type.
func (z *zone) respond(query *dns.Msg) *dns.Msg {
	response := new(dns.Msg).SetReply(query)
	response.Authoritative, response.RecursionAvailable = true, true
	question := query.Question[0]
	header := dns.RR_Header{Name: question.Name, Class: dns.ClassINET, Ttl: ttl}
	switch found := z.lookup(question.Name); {
	case !found.exists:
		response.Rcode = dns.RcodeNameError
	case found.alias != "":
		header.Rrtype = dns.TypeCNAME
		response.Answer = append(response.Answer, &dns.CNAME{Hdr: header, Target: found.alias})
	case question.Qclass == dns.ClassINET && (question.Qtype == dns.TypeA || question.Qtype == dns.TypeANY):
		header.Rrtype = dns.TypeA
		for _, address := range found.addresses {
			if address.Is4() {
				response.Answer = append(response.Answer, &dns.A{Hdr: header, A: address.AsSlice()})
			}
		}
	}
	return response
}
