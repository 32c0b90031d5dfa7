package dns

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// crowdSize is the number of Pods behind the Service crowd. Their addresses need more than 512 bytes.
const crowdSize = 40

func testZone(t *testing.T) *zone {
	t.Helper()
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	endpoints := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, service := range []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "members"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "crowd"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "elsewhere"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"}},
	} {
		if err := services.Add(service); err != nil {
			t.Fatal(err)
		}
	}
	err := endpoints.Add(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "members-1", Labels: map[string]string{discoveryv1.LabelServiceName: "members"}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.128.0.2"}, Hostname: new("members-0"), Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
			{Addresses: []string{"10.128.0.3"}, Hostname: new("members-1"), Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
			{Addresses: []string{"10.128.0.4"}, Hostname: new("members-2"), Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	crowd := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "crowd-1", Labels: map[string]string{discoveryv1.LabelServiceName: "crowd"}},
	}
	for i := range crowdSize {
		crowd.Endpoints = append(crowd.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.128.1.%d", i)}})
	}
	if err := endpoints.Add(crowd); err != nil {
		t.Fatal(err)
	}
	return &zone{services: corelisters.NewServiceLister(services), slices: discoverylisters.NewEndpointSliceLister(endpoints)}
}

// serving starts a server of the test zone, and returns its address for UDP and its address for TCP.
func serving(t *testing.T) (udp, tcp string) {
	t.Helper()
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&Server{packets: packets, stream: stream}).serve(ctx, testZone(t)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return packets.LocalAddr().String(), stream.Addr().String()
}

func ask(t *testing.T, network, address, name string, kind uint16) *dns.Msg {
	t.Helper()
	query := new(dns.Msg).SetQuestion(name, kind)
	response, _, err := (&dns.Client{Net: network}).ExchangeContext(t.Context(), query, address)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return response
}

// addressesIn returns the addresses in a response.
func addressesIn(response *dns.Msg) (all []string) {
	for _, record := range response.Answer {
		if a, ok := record.(*dns.A); ok {
			all = append(all, a.A.String())
		}
	}
	return all
}

func TestNamesOfServices(t *testing.T) {
	t.Parallel()
	udp, tcp := serving(t)
	for _, test := range []struct {
		name string
		code int
		want []string
	}{
		{"web.default.svc.cluster.local.", dns.RcodeSuccess, []string{"10.96.0.7"}},
		{"WEB.Default.svc.cluster.local.", dns.RcodeSuccess, []string{"10.96.0.7"}},
		{"members.default.svc.cluster.local.", dns.RcodeSuccess, []string{"10.128.0.2", "10.128.0.3"}},
		{"members-1.members.default.svc.cluster.local.", dns.RcodeSuccess, []string{"10.128.0.3"}},
		{"members-2.members.default.svc.cluster.local.", dns.RcodeNameError, nil},
		{"x.web.default.svc.cluster.local.", dns.RcodeNameError, nil},
		{"web.other.svc.cluster.local.", dns.RcodeNameError, nil},
		{"web.", dns.RcodeNameError, nil},
		{"example.com.", dns.RcodeNameError, nil},
	} {
		for network, address := range map[string]string{"udp": udp, "tcp": tcp} {
			response := ask(t, network, address, test.name, dns.TypeA)
			if got := addressesIn(response); response.Rcode != test.code || !slices.Equal(got, test.want) {
				t.Errorf("%s: %v %v, want %v %v", test.name, response.Rcode, got, test.code, test.want)
			}
		}
	}
}

// A resolver gives up on a name that does not exist. If a name lacks a type, the resolver
// gives up on the type only.
func TestNameWithoutTheType(t *testing.T) {
	t.Parallel()
	udp, _ := serving(t)
	response := ask(t, "udp", udp, "web.default.svc.cluster.local.", dns.TypeAAAA)
	if response.Rcode != dns.RcodeSuccess || len(response.Answer) > 0 {
		t.Errorf("the response is %v", response)
	}
}

func TestExternalName(t *testing.T) {
	t.Parallel()
	udp, _ := serving(t)
	response := ask(t, "udp", udp, "elsewhere.default.svc.cluster.local.", dns.TypeA)
	if len(response.Answer) != 1 {
		t.Fatalf("the answers are %v", response.Answer)
	}
	if alias, ok := response.Answer[0].(*dns.CNAME); !ok || alias.Target != "db.example.com." {
		t.Errorf("the answer is %v", response.Answer[0])
	}
}

// A client that got a truncated response over UDP gets the whole over TCP.
func TestLargeResponse(t *testing.T) {
	t.Parallel()
	udp, tcp := serving(t)
	const name = "crowd.default.svc.cluster.local."
	if response := ask(t, "udp", udp, name, dns.TypeA); !response.Truncated { // the client reads 512 bytes at most
		t.Errorf("over UDP the response is not truncated: %v", response)
	}
	if response := ask(t, "tcp", tcp, name, dns.TypeA); response.Truncated || len(addressesIn(response)) != crowdSize {
		t.Errorf("over TCP the response has %d addresses, want %d", len(addressesIn(response)), crowdSize)
	}
}

// The first response is to the first packet that is a question.
func TestGarbageGetsNoResponse(t *testing.T) {
	t.Parallel()
	udp, _ := serving(t)
	conn, err := dns.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("garbage")); err != nil {
		t.Fatal(err)
	}
	query := new(dns.Msg).SetQuestion("web.default.svc.cluster.local.", dns.TypeA)
	if err := conn.WriteMsg(query); err != nil {
		t.Fatal(err)
	}
	response, err := conn.ReadMsg()
	if err != nil || response.Id != query.Id || len(response.Answer) != 1 {
		t.Errorf("the first response is %v, %v", response, err)
	}
}
