package dns

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

func testZone(t *testing.T) *zone {
	t.Helper()
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	endpoints := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, service := range []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "members"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
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
	return &zone{services: corelisters.NewServiceLister(services), slices: discoverylisters.NewEndpointSliceLister(endpoints)}
}

func ask(t *testing.T, z *zone, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var response dnsmessage.Message
	if err := response.Unpack(lookup(z.lookup).respond(packed, maxPacket)); err != nil {
		t.Fatal(err)
	}
	if response.ID != query.ID || !response.Response {
		t.Errorf("%s: the header of the response is %+v", name, response.Header)
	}
	return response
}

func TestNamesOfServices(t *testing.T) {
	t.Parallel()
	z := testZone(t)
	for _, test := range []struct {
		name string
		code dnsmessage.RCode
		want []string
	}{
		{"web.default.svc.cluster.local.", dnsmessage.RCodeSuccess, []string{"10.96.0.7"}},
		{"WEB.Default.svc.cluster.local.", dnsmessage.RCodeSuccess, []string{"10.96.0.7"}},
		{"members.default.svc.cluster.local.", dnsmessage.RCodeSuccess, []string{"10.128.0.2", "10.128.0.3"}},
		{"members-1.members.default.svc.cluster.local.", dnsmessage.RCodeSuccess, []string{"10.128.0.3"}},
		{"members-2.members.default.svc.cluster.local.", dnsmessage.RCodeNameError, nil},
		{"x.web.default.svc.cluster.local.", dnsmessage.RCodeNameError, nil},
		{"web.other.svc.cluster.local.", dnsmessage.RCodeNameError, nil},
		{"web.", dnsmessage.RCodeNameError, nil},
		{"example.com.", dnsmessage.RCodeNameError, nil},
	} {
		response := ask(t, z, test.name, dnsmessage.TypeA)
		var got []string
		for _, record := range response.Answers {
			if a, ok := record.Body.(*dnsmessage.AResource); ok {
				got = append(got, netip.AddrFrom4(a.A).String())
			}
		}
		if response.RCode != test.code || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v %v, want %v %v", test.name, response.RCode, got, test.code, test.want)
		}
	}
}

// A resolver gives up on a name that does not exist. If a name lacks a type, the resolver
// gives up on the type only.
func TestNameWithoutTheType(t *testing.T) {
	t.Parallel()
	response := ask(t, testZone(t), "web.default.svc.cluster.local.", dnsmessage.TypeAAAA)
	if response.RCode != dnsmessage.RCodeSuccess || len(response.Answers) > 0 {
		t.Errorf("the response is %v %v", response.RCode, response.Answers)
	}
}

func TestExternalName(t *testing.T) {
	t.Parallel()
	response := ask(t, testZone(t), "elsewhere.default.svc.cluster.local.", dnsmessage.TypeA)
	if len(response.Answers) != 1 {
		t.Fatalf("the answers are %v", response.Answers)
	}
	if alias, ok := response.Answers[0].Body.(*dnsmessage.CNAMEResource); !ok || alias.CNAME.String() != "db.example.com." {
		t.Errorf("the answer is %v", response.Answers[0])
	}
}

func TestGarbageGetsNoResponse(t *testing.T) {
	t.Parallel()
	if response := lookup(testZone(t).lookup).respond([]byte("garbage"), maxPacket); response != nil {
		t.Errorf("the response is %q", response)
	}
}
