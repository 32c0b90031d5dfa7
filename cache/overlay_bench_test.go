package cache

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/yare-go/yare/kube"
)

// benchClient is a client over a store that is synced and stands still. Requests that are
// made all the same fail.
func benchClient(b *testing.B, s *stream) (*Cache, kube.Handler) {
	b.Helper()
	c := s.caches
	c.streams = []*stream{s}
	return c, c.Handler(kube.HandlerFunc(func(_ context.Context, r *kube.Request) (*kube.Response, error) {
		b.Fatalf("a request was made: %s %s", r.Verb, r.Ref())
		return nil, nil
	}))
}

// BenchmarkCachedGet is a read by name through the handler.
func BenchmarkCachedGet(b *testing.B) {
	s := filled(webApps, samples.webApp, 2000)
	_, client := benchClient(b, s)
	var requests []*kube.Request
	for o := range s.store.All(Filter{}) {
		requests = append(requests, &kube.Request{Verb: kube.VerbGet, Resource: webApps.Resource, Namespace: o.Namespace, Name: o.Name})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := client.Do(b.Context(), requests[i%len(requests)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCachedList is a list that selects about 60 of 1,000 objects, through the handler.
func BenchmarkCachedList(b *testing.B) {
	_, client := benchClient(b, filled(webApps, samples.webApp, 1000))
	r := &kube.Request{Verb: kube.VerbList, Resource: webApps.Resource, Query: url.Values{"labelSelector": {"team=search,tier=front"}, "limit": {"500"}}}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		response, err := client.Do(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		n = len(response.Items)
	}
	b.ReportMetric(float64(n), "objects")
}

// BenchmarkSkippedApply is an apply that is not sent: because the object rests at the
// version of the last one; because all that changes is its status; or because the fields
// are compared, as after a restart.
func BenchmarkSkippedApply(b *testing.B) {
	const body = `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"labels":{"app":"a"},"name":"a","namespace":"ns"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"image":"registry.example.com/a:1","name":"main","ports":[{"containerPort":8080}],"resources":{"requests":{"cpu":"100m"}}}]}}}}`
	const entry = `{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{"f:requests":{"f:cpu":{}}}}}}}}},"manager":"us","operation":"Apply","time":"2026-11-20T12:00:00Z"}`
	live := func(version int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"creationTimestamp":"2026-11-20T12:00:00Z","generation":1,"labels":{"app":"a"},"managedFields":[%s],"name":"a","namespace":"ns","resourceVersion":"%d","uid":"u"},`+
			`"spec":{"progressDeadlineSeconds":600,"replicas":2,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"a"}},"strategy":{"rollingUpdate":{"maxSurge":"25%%","maxUnavailable":"25%%"},"type":"RollingUpdate"},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"image":"registry.example.com/a:1","imagePullPolicy":"IfNotPresent","name":"main","ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}},"status":{"availableReplicas":%d}}`, entry, version, version)
	}
	for _, name := range []string{"same version", "status churn", "restart"} {
		b.Run(name, func(b *testing.B) {
			s := alone(webApps)
			s.take(changeOf(live(1)))
			c, next := benchClient(b, s)
			s.store.progress("1", true)
			applies := c.Applies()
			client := applies.SkipUnchanged(next, func(kube.Resource, Record, []byte) bool { return true })
			r := &kube.Request{
				Verb: kube.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a", ContentType: kube.ContentApply, Body: []byte(body),
				Query: url.Values{"fieldManager": {"us"}, "force": {"true"}},
			}
			b.ReportAllocs()
			for i := 2; b.Loop(); i++ {
				switch name {
				case "status churn":
					b.StopTimer()
					s.take(changeOf(live(i)))
					b.StartTimer()
				case "restart":
					clear(applies.last)
				}
				if _, err := client.Do(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
