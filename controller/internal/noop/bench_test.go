package noop

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// BenchmarkSkippedApply measures an apply that is not sent: because the object still has the
// version of the last one; because only its status changes; or because the fields are compared,
// as after a restart.
func BenchmarkSkippedApply(b *testing.B) {
	const body = `{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"labels":{"app":"a"},"name":"a","namespace":"ns"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"image":"registry.example.com/a:1","name":"main","ports":[{"containerPort":8080}],"resources":{"requests":{"cpu":"100m"}}}]}}}}`
	const entry = `{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{"f:requests":{"f:cpu":{}}}}}}}}},"manager":"us","operation":"Apply","time":"2026-11-20T12:00:00Z"}`
	live := func(version int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"creationTimestamp":"2026-11-20T12:00:00Z","generation":1,"labels":{"app":"a"},"managedFields":[%s],"name":"a","namespace":"ns","resourceVersion":"%d","uid":"u"},`+
			`"spec":{"progressDeadlineSeconds":600,"replicas":2,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"a"}},"strategy":{"rollingUpdate":{"maxSurge":"25%%","maxUnavailable":"25%%"},"type":"RollingUpdate"},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"image":"registry.example.com/a:1","imagePullPolicy":"IfNotPresent","name":"main","ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}},"status":{"availableReplicas":%d}}`, entry, version, version)
	}
	for _, name := range []string{"same version", "status churn", "restart"} {
		b.Run(name, func(b *testing.B) {
			server := &server{object: live(1), version: 1}
			c := cache.New(server)
			defer c.Close()
			changes := make(chan struct{}, 2)
			sub, err := c.Open(b.Context(), kube.Stream{Resource: webApps}, func(cache.Change) { changes <- struct{}{} })
			if err != nil {
				b.Fatal(err)
			}
			<-changes // the object, and the end of the list
			<-changes
			checker := NewChecker(c.View(sub))
			client := checker.Handler(c.Handler(server), func(kube.Resource, *cache.Live) bool { return true })
			r := &kube.Request{
				Verb: kube.VerbPatch, Resource: webApps, Namespace: "ns", Name: "a", ContentType: kube.ContentApply, Body: []byte(body),
				Query: url.Values{"fieldManager": {"us"}, "force": {"true"}},
			}
			b.ReportAllocs()
			for b.Loop() {
				switch name {
				case "status churn":
					b.StopTimer()
					server.put(live)
					<-changes
					b.StartTimer()
				case "restart":
					clear(checker.last)
				}
				if _, err := client.Do(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			if server.applies > 0 {
				b.Fatalf("%d applies were sent", server.applies)
			}
		})
	}
}
