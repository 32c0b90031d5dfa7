package noop

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/bound"
	"github.com/yare-go/yare/kube/wire"
)

// BenchmarkSkippedApply measures an apply that is not sent: because the object still has the
// version of the last one; because only its status changes; or because the fields are compared,
// as after a restart.
func BenchmarkSkippedApply(b *testing.B) {
	for _, name := range []string{"same version", "status churn", "restart"} {
		b.Run(name, func(b *testing.B) {
			s := newSkipping(b)
			b.ReportAllocs()
			for b.Loop() {
				switch name {
				case "status churn":
					b.StopTimer()
					s.changeStatus()
					b.StartTimer()
				case "restart":
					clear(s.checker.last)
				}
				s.apply(b)
			}
		})
	}
}

// A skipped apply allocates no more than recorded.
func TestAllocationsOfSkippedApplies(t *testing.T) {
	s := newSkipping(t)
	bound.CheckAllocations(t, "the version of the last apply", 8, func() { s.apply(t) })
	bound.CheckAllocations(t, "all fields are compared", 490, func() {
		clear(s.checker.last)
		s.apply(t)
	})
}

// skipping is an apply that is skipped each time.
type skipping struct {
	server  *server
	changes chan struct{}
	live    func(version int) string
	checker *Checker
	client  wire.Handler
	request *wire.Request
}

// changeStatus changes the status of the object, and waits until the cache shows it.
func (s *skipping) changeStatus() {
	s.server.put(s.live)
	<-s.changes
}

// apply applies the object, and sees that nothing is sent.
func (s *skipping) apply(t testing.TB) {
	t.Helper()
	if _, err := s.client.Do(t.Context(), s.request); err != nil || s.server.applies > 0 {
		t.Fatalf("%d applies were sent, error %v", s.server.applies, err)
	}
}

func newSkipping(t testing.TB) *skipping {
	t.Helper()
	const body = `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"labels":{"app":"a"},"name":"a","namespace":"ns"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"image":"registry.example.com/a:1","name":"main","ports":[{"containerPort":8080}],"resources":{"requests":{"cpu":"100m"}}}]}}}}`
	const entry = `{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{"f:requests":{"f:cpu":{}}}}}}}}},"manager":"us","operation":"Apply","time":"2026-11-20T12:00:00Z"}`
	live := func(version int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"creationTimestamp":"2026-11-20T12:00:00Z","generation":1,"labels":{"app":"a"},"managedFields":[%s],"name":"a","namespace":"ns","resourceVersion":"%d","uid":"u"},`+
			`"spec":{"progressDeadlineSeconds":600,"replicas":2,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"a"}},"strategy":{"rollingUpdate":{"maxSurge":"25%%","maxUnavailable":"25%%"},"type":"RollingUpdate"},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"image":"registry.example.com/a:1","imagePullPolicy":"IfNotPresent","name":"main","ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}},"status":{"availableReplicas":%d}}`, entry, version, version)
	}
	s := &skipping{server: &server{object: live(1), version: 1}, changes: make(chan struct{}, 2), live: live}
	c := cache.New(s.server)
	t.Cleanup(c.Close)
	sub, err := c.Open(t.Context(), wire.Stream{Resource: webApps}, func(cache.Change) { s.changes <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	<-s.changes // the object, and the end of the list
	<-s.changes
	view := c.View(sub)
	ref := wire.Ref{Resource: webApps, Namespace: "ns", Name: "a"}
	for !view.KnownState(ref).IsCertain { // an object is certain only once the watch after its list is open
		time.Sleep(time.Millisecond)
	}
	s.checker = NewChecker(view, nil)
	s.client = s.checker.Handler(c.Handler(s.server), func(wire.Resource, *cache.KnownState) bool { return true })
	s.request = &wire.Request{
		Verb: wire.VerbPatch, Resource: webApps, Namespace: "ns", Name: "a", ContentType: wire.ContentApply, Body: []byte(body),
		Query: url.Values{"fieldManager": {"us"}, "force": {"true"}},
	}
	return s
}
