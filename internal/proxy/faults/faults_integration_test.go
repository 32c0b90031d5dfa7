package faults_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// onServer is a proxy of a real API server.
type onServer struct {
	proxy *faults.InjectingProxy
	// path is the path of the Secrets of the run.
	path    string
	program *program
	client  *kube.Client
	// secrets are the Secrets that the program sees. direct are the Secrets that an administrator sees.
	secrets, direct kube.API[corev1.Secret]
}

func newOnServer(t *testing.T) *onServer {
	t.Helper()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	p := newProxy(t, faults.Options{Target: cluster.Config(), Namespace: namespace})
	program := newProgram(t, p, "program")
	client, err := kube.NewClient(program.session.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &onServer{
		proxy: p, path: "/api/v1/namespaces/" + namespace + "/secrets", program: program, client: client,
		secrets: kube.Namespaced[corev1.Secret](client, namespace), direct: kube.Namespaced[corev1.Secret](cluster.Client(t), namespace),
	}
}

// create makes a Secret as an administrator.
func (o *onServer) create(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	made, err := o.direct.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// list returns the names and the version of a list that the program sends.
func (o *onServer) list(t *testing.T, query string) (names []string, version string) {
	t.Helper()
	return list(t, o.program, o.path+query)
}

// list returns the names and the version of a list of Secrets.
func list(t *testing.T, p *program, path string) (names []string, version string) {
	t.Helper()
	code, body := p.send(http.MethodGet, path, "")
	var list corev1.SecretList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
		t.Fatalf("the list is answered with %d %s: %v", code, body, err)
	}
	for _, each := range list.Items {
		names = append(names, each.Name)
	}
	return names, list.ResourceVersion
}

func TestRunSeesItsNamespaceOnly(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	other := cluster.Namespace(t)
	o := newOnServer(t)
	own := o.create(t, "own")
	foreign, err := kube.Namespaced[corev1.Secret](cluster.Client(t), other).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := kube.Everywhere[corev1.Secret](o.client).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(listed, func(m *corev1.Secret) bool { return m.UID == own.UID }) {
		t.Errorf("the list of all namespaces lacks %s", own.Name)
	}
	for _, m := range listed {
		if m.Namespace != own.Namespace {
			t.Errorf("the list of all namespaces contains %s/%s", m.Namespace, m.Name)
		}
	}
	if err := o.client.Delete(t.Context(), foreign); !kube.IsForbidden(err) {
		t.Errorf("a write in another namespace: %v", err)
	}
}

func TestRequestFaultsOnServer(t *testing.T) {
	t.Parallel()
	o := newOnServer(t)
	begin(t, o.proxy, 0)
	m, err := o.secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err = o.secrets.Replace(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	requests := o.proxy.Requests()
	create, replace := requests[0].Point, requests[1].Point

	replace.Occurrence++
	conflict := arm(t, o.proxy, faults.Fault{Kind: faults.Conflict, At: &replace})
	if _, err := o.secrets.Replace(t.Context(), m); !kube.IsConflict(err) {
		t.Errorf("replacing an object that somebody else changed: %v", err)
	}
	waitTriggered(t, conflict)

	if err := o.direct.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	create.Occurrence++
	lost := arm(t, o.proxy, faults.Fault{Kind: faults.Committed500, At: &create})
	if _, err := o.secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err == nil {
		t.Error("a create whose answer is lost succeeds")
	}
	waitTriggered(t, lost)
	if _, err := o.direct.Get(t.Context(), "a"); err != nil {
		t.Errorf("the server has not carried out the create: %v", err)
	}
}

func TestProgramMissesStatesOfServer(t *testing.T) {
	t.Parallel()
	o := newOnServer(t)
	begin(t, o.proxy, 0)
	_, version := o.list(t, "")
	a := arm(t, o.proxy, faults.Fault{Kind: faults.WatchMissed, Stream: "secrets", Events: 1})
	w := o.program.watch(o.path + "?watch=true&resourceVersion=" + version)
	first := o.create(t, "first")
	w.want("ADDED " + first.ResourceVersion)
	o.create(t, "missed")
	if err := o.direct.Delete(t.Context(), "missed"); err != nil {
		t.Fatal(err)
	}
	waitHeld(t, o.proxy, 2)
	waitTriggered(t, a)
	o.proxy.Injector.Disarm()
	w.want("broken")
	o.program.watch(o.path + "?watch=true&resourceVersion=" + first.ResourceVersion).want("ERROR 410")
	_, version = o.list(t, "")
	w = o.program.watch(o.path + "?watch=true&resourceVersion=" + version)
	last := o.create(t, "last")
	w.want("ADDED " + last.ResourceVersion)
}

// TestServerShowsThePast checks that the past seen by a stale read is a past of the server.
func TestServerShowsThePast(t *testing.T) {
	t.Parallel()
	o := newOnServer(t)
	o.create(t, "old")
	begin(t, o.proxy, 0)
	after := o.create(t, "new")
	a := arm(t, o.proxy, faults.Fault{Kind: faults.Stale})
	present, _ := o.list(t, "")
	past, version := o.list(t, "?resourceVersion=0")
	if !slices.Contains(present, "new") {
		t.Errorf("the list of the present is %v", present)
	}
	if slices.Contains(past, "new") || !slices.Contains(past, "old") {
		t.Errorf("the list of the past is %v", past)
	}
	waitTriggered(t, a)
	if code, body := o.program.send(http.MethodGet, o.path+"/new?resourceVersion=0", ""); code != http.StatusNotFound {
		t.Errorf("an object that was not there is answered with %d %s", code, body)
	}
	code, body := o.program.send(http.MethodGet, o.path+"/old?resourceVersion=0", "")
	var old corev1.Secret
	if err := json.Unmarshal([]byte(body), &old); err != nil || code != 200 || old.Name != "old" || old.Kind != "Secret" || old.APIVersion != "v1" {
		t.Errorf("an object that was there is answered with %d %s: %v", code, body, err)
	}
	w := o.program.watch(o.path + "?watch=true&resourceVersion=" + version)
	waitHeld(t, o.proxy, 1)
	w.wantNothing()
	o.proxy.Injector.Disarm()
	w.want("ADDED " + after.ResourceVersion)
}
