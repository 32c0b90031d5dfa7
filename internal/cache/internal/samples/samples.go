// Package samples makes objects for the tests and benchmarks of the cache: as varied as objects of a
// cluster, in names, uids, times, images, counts, and in which optional parts they have.
package samples

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// WebApps returns the stream of all objects of Random.WebApp.
func WebApps() wire.Stream { return stream("example.com", "WebApp", "webapps") }

// Pods returns the stream of all objects of Random.Pod.
func Pods() wire.Stream { return stream("", "Pod", "pods") }

// Secrets returns the stream of all Secrets.
func Secrets() wire.Stream { return stream("", "Secret", "secrets") }

func stream(group, kind, plural string) wire.Stream {
	return wire.Stream{Resource: wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Plural: plural,
	}}
}

// WebApp is the type of WebApps, as far as indexes look at it.
type WebApp = kube.CustomResource[WebAppSpec, kube.None]

// WebAppSpec is the desired state of a WebApp.
type WebAppSpec struct {
	Host string `json:"host"`
}

// Definition returns the kind.
func (WebAppSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "WebApp"}
}

// Random makes objects. The same seed makes the same objects.
type Random struct{ *rand.Rand }

// New returns a Random.
func New(seed uint64) Random { return Random{rand.New(rand.NewPCG(seed, 17))} }

func (s Random) pick(of ...string) string { return of[s.IntN(len(of))] }

// Letters returns n random letters.
func (s Random) Letters(n int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[s.IntN(len(alphabet))]
	}
	return string(b)
}

// UID returns a random uid.
func (s Random) UID() string {
	a, b := s.Uint64(), s.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(a), uint16(a>>32), a>>52, b&0xfff, b>>16)
}

func (s Random) time() string {
	return time.Unix(1780000000+s.Int64N(20_000_000), 0).UTC().Format(time.RFC3339)
}

// Team returns the name of a team. The labels and namespaces of the objects have it.
func (s Random) Team() string {
	return s.pick("payments", "search", "identity", "growth", "logistics", "platform", "data", "mobile")
}

func (s Random) image() string {
	return fmt.Sprintf("registry.example.com/%s/%s:%d.%d.%d", s.Team(),
		s.pick("api", "frontend", "worker", "gateway", "cron", "indexer"), s.IntN(4), s.IntN(30), s.IntN(9))
}

// WebApp returns a custom resource of about 1.7 KB.
func (s Random) WebApp(i int) string {
	name := fmt.Sprintf("%s-%s-%d", s.Team(), s.pick("shop", "blog", "docs", "admin", "status"), i)
	created, updated, status := s.time(), s.time(), s.time()
	ready := s.pick("True", "True", "True", "False")
	replicas := 1 + s.IntN(9)
	env := ""
	for range s.IntN(4) {
		env += fmt.Sprintf(`,{"name":"%s_%s","value":"%s"}`,
			s.pick("DB", "CACHE", "QUEUE"), s.pick("HOST", "USER", "NAME"), s.Letters(8+s.IntN(12)))
	}
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"annotations":{"example.com/checksum":"%016x%016x","example.com/contact":"%s@example.com"},"creationTimestamp":%q,"generation":%d,`+
		`"labels":{"app.kubernetes.io/managed-by":"yare","app.kubernetes.io/name":%q,"team":%q,"tier":%q},`+
		`"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/contact":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:team":{},"f:tier":{}}},"f:spec":{".":{},"f:env":{},"f:host":{},"f:image":{},"f:replicas":{}}},"manager":%q,"operation":"Apply","time":%q},`+
		`{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:available":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}},"manager":"webapp-operator","operation":"Apply","subresource":"status","time":%q}],`+
		`"name":%q,"namespace":%q,"resourceVersion":"%d","uid":%q},`+
		`"spec":{"env":[{"name":"LOG_LEVEL","value":%q}%s],"host":"%s.apps.example.com","image":%q,"replicas":%d},`+
		`"status":{"available":%d,"conditions":[{"lastTransitionTime":%q,"message":"%d of %d replicas are available","observedGeneration":1,"reason":"Reconciled","status":%q,"type":"Ready"}]}}`,
		s.Uint64(), s.Uint64(), s.Letters(6), created, 1+s.IntN(12), name, s.Team(), s.pick("front", "back"),
		s.pick("kubectl", "argocd", "flux"), updated, status,
		name, "team-"+s.Team(), 100000+i*7+s.IntN(5), s.UID(), s.pick("debug", "info", "warn"), env, name, s.image(),
		replicas, replicas, status, replicas, replicas, ready)
}

// Pod returns a running Pod of about 5.1 KB.
func (s Random) Pod(i int) string {
	// Three Pods have one ReplicaSet.
	owner := New(uint64(i / 3))
	app := fmt.Sprintf("%s-%s", owner.Team(), owner.pick("api", "web", "worker", "gateway", "indexer", "sync"))
	hash := owner.Letters(10)
	rs, rsUID, image := app+"-"+hash, owner.UID(), owner.image()
	name := rs + "-" + s.Letters(5)
	created, started := s.time(), s.time()
	node := fmt.Sprintf("node-%s-%d", s.pick("a", "b", "c"), s.IntN(60))
	ip := fmt.Sprintf("10.%d.%d.%d", s.IntN(250), s.IntN(250), s.IntN(250))
	host := fmt.Sprintf("192.168.%d.%d", s.IntN(4), s.IntN(250))
	volume := "kube-api-access-" + s.Letters(5)
	digest := fmt.Sprintf("%016x%016x%016x%016x", owner.Uint64(), owner.Uint64(), owner.Uint64(), owner.Uint64())
	container := fmt.Sprintf("%016x%016x%016x%016x", s.Uint64(), s.Uint64(), s.Uint64(), s.Uint64())
	cpu, memory := fmt.Sprintf("%dm", 50*(1+s.IntN(20))), fmt.Sprintf("%dMi", 64*(1+s.IntN(16)))
	condition := func(kind string) string {
		return fmt.Sprintf(`{"type":%q,"observedGeneration":1,"status":"True","lastProbeTime":null,"lastTransitionTime":%q}`,
			kind, started)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"generateName":"%s-","namespace":%q,"uid":%q,"resourceVersion":"%d","generation":1,"creationTimestamp":%q,`+
		`"labels":{"app":%q,"pod-template-hash":%q,"team":%q},"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"%d"},`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}],`+
		`"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:team":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}},`+
		`{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:observedGeneration":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:observedGeneration":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:observedGeneration":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:observedGeneration":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"%s\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},"subresource":"status"}]},`+
		`"spec":{"volumes":[{"name":%q,"projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],`+
		`"containers":[{"name":"main","image":%q,"ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"LOG_LEVEL","value":%q}],"resources":{"limits":{"memory":%q},"requests":{"cpu":%q,"memory":%q}},"volumeMounts":[{"name":%q,"readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],`+
		`"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":%q,"securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},`+
		`"status":{"observedGeneration":1,"phase":"Running","conditions":[%s,%s,%s,%s,%s],"hostIP":%q,"hostIPs":[{"ip":%q}],"podIP":%q,"podIPs":[{"ip":%q}],"startTime":%q,"containerStatuses":[{"name":"main","state":{"running":{"startedAt":%q}},"lastState":{},"ready":true,"restartCount":%d,"image":%q,"imageID":"registry.example.com/%s@sha256:%s","containerID":"containerd://%s","started":true}],"qosClass":"Burstable"}}`,
		name, rs, "team-"+owner.Team(), s.UID(), 200000+i*11+s.IntN(9), created, app, hash, owner.Team(),
		8000+owner.IntN(100), rs, rsUID, created, rsUID,
		started, ip, volume, image, s.pick("debug", "info", "warn"), memory, cpu, memory, volume, node,
		condition("PodReadyToStartContainers"), condition("Initialized"), condition("Ready"), condition("ContainersReady"),
		condition("PodScheduled"),
		host, host, ip, ip, created, started, s.IntN(3), image, app, digest, container)
}
