package kube

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

func TestCreateSubresource(t *testing.T) {
	t.Parallel()
	s := scripted(t,
		answer(`{"status":{"token":"secret"}}`),
		answer(`{"status":"Success"}`),
		refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "the budget says no"),
	)
	c := NewClientFromHandler(s).WithFieldManager("me")
	token, err := CreateSubresource[authenticationv1.TokenRequest](t.Context(), Namespaced[corev1.ServiceAccount](c, "n"), "robot", "token",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"bank"}}}, DryRun())
	if err != nil || token.Status.Token != "secret" {
		t.Errorf("the token is %+v, %v", token, err)
	}
	first := s.got[0]
	var sent authenticationv1.TokenRequest
	if err := Unmarshal(first.Body, &sent); err != nil {
		t.Fatal(err)
	}
	if first.Verb != wire.VerbCreate || first.Ref().String() != `serviceaccounts "n/robot"` || first.Subresource != "token" ||
		sent.Namespace != "n" || sent.Name != "robot" || sent.Spec.Audiences[0] != "bank" || first.Query.Encode() != "dryRun=All&fieldManager=me" {
		t.Errorf("sent %+v", first)
	}
	pods := Namespaced[corev1.Pod](c, "n")
	named := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "another"}}
	if status, err := CreateSubresource[metav1.Status](t.Context(), pods, "web", "eviction", named); err != nil || status.Status != "Success" {
		t.Errorf("the eviction was answered with %+v, %v", status, err)
	}
	var eviction policyv1.Eviction
	if err := Unmarshal(s.got[1].Body, &eviction); err != nil || eviction.Name != "another" || eviction.Namespace != "n" {
		t.Errorf("the eviction was sent with another name than it has: %s", s.got[1].Body)
	}
	if _, err := CreateSubresource[metav1.Status](t.Context(), pods, "web", "eviction", nil); !IsTooManyRequests(err) {
		t.Errorf("the error is %v", err)
	}
	if len(s.got[2].Body) > 0 {
		t.Errorf("sent %s for no body", s.got[2].Body)
	}
}

func TestSubresourceView(t *testing.T) {
	t.Parallel()
	s := scripted(t, answer(`{"metadata":{"name":"x"}}`), answer(`{"metadata":{"name":"x"}}`))
	requests := Everywhere[certificatesv1.CertificateSigningRequest](NewClientFromHandler(s)).Subresource("approval")
	if _, err := requests.Get(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	if _, err := requests.Replace(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}}); err != nil {
		t.Error(err)
	}
	if want := "get certificatesigningrequests.certificates.k8s.io \"x\"/approval\nupdate certificatesigningrequests.certificates.k8s.io \"x\"/approval"; s.String() != want {
		t.Errorf("sent %s", s)
	}
}

func TestBadSubresourcesMakeNoRequest(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), NewClientFromHandler(scripted(t))
	pods, maps := Namespaced[corev1.Pod](c, "n"), Namespaced[corev1.ConfigMap](c, "n")
	create := func(name, subresource string, body any) error {
		_, err := CreateSubresource[metav1.Status](ctx, pods, name, subresource, body)
		return err
	}
	wantError(t, create("", "eviction", nil), "the name is empty")
	wantError(t, create("web", "", nil), "the subresource is empty")
	wantError(t, create("web", "../x", nil), "may not contain")
	wantError(t, create("web", "binding", func() {}), `encode the binding of pods "n/web"`)
	_, err := CreateSubresource[metav1.Status](ctx, pods.Status(), "web", "eviction", nil)
	wantError(t, err, "the whole object only")
	_, err = pods.Subresource("").Get(ctx, "web")
	wantError(t, err, "the subresource is empty")
	_, err = maps.Subresource("status").Get(ctx, "x")
	wantError(t, err, "have no status")
	_, err = pods.Subresource("resize").Apply(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	wantError(t, err, "only the whole object and its status can be applied")
	_, err = maps.Logs(ctx, "x", LogOptions{})
	wantError(t, err, "only Pods have logs")
	_, err = pods.Logs(ctx, "web", LogOptions{Tail: -1})
	wantError(t, err, "must not be negative")
}

// A log that is followed goes on for longer than a request may take, and ends with its context.
func TestLogs(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	next := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String() + " " + r.Header.Get("Accept")
		_, _ = fmt.Fprintln(w, "one")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
		_, _ = fmt.Fprintln(w, "two")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, withTimeout(50*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, err := Namespaced[corev1.Pod](c, "n").Logs(ctx, "web", LogOptions{Container: "c", Follow: true, Since: 1500 * time.Millisecond, Tail: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if got, want := <-asked, "/api/v1/namespaces/n/pods/web/log?container=c&follow=true&sinceSeconds=2&tailLines=3 */*"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	lines := bufio.NewReader(log)
	if line, err := lines.ReadString('\n'); err != nil || line != "one\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	time.AfterFunc(100*time.Millisecond, func() { close(next) })
	if line, err := lines.ReadString('\n'); err != nil || line != "two\n" {
		t.Fatalf("read %q, %v after the timeout of the client", line, err)
	}
	cancel()
	if _, err := lines.ReadString('\n'); !errors.Is(err, context.Canceled) {
		t.Errorf("read on after the end of the context: %v", err)
	}
}

func TestLogsOfNoPod(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", wire.ContentJSON)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","reason":"NotFound","message":"pods \"web\" not found","details":{"name":"web"}}`)
	})
	if _, err := Namespaced[corev1.Pod](c, "n").Logs(t.Context(), "web", LogOptions{}); !IsNotFound(err) {
		t.Errorf("the error is %v", err)
	}
}

// A request can switch protocols. Its stream is then written too. The server would answer a request
// of HTTP/2 otherwise.
func TestSwitchOfProtocols(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "echo" {
			http.Error(w, "upgrade to echo", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	})
	r := &wire.Request{
		Verb: wire.VerbGet, Resource: wire.Resource{Plural: "pods"}, Namespace: "n", Name: "web", Subresource: "exec", WantsBodyReader: true,
		Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}},
	}
	response, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.BodyReader.Close()
	stream, ok := response.BodyReader.(io.ReadWriteCloser)
	if !ok || response.Code != http.StatusSwitchingProtocols {
		t.Fatalf("the answer %d has the stream %T", response.Code, response.BodyReader)
	}
	if _, err := io.WriteString(stream, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(stream); err != nil || string(text) != "echo hello\n" {
		t.Errorf("read %q, %v", text, err)
	}
	r.Header = nil
	if _, err := c.Do(t.Context(), r); err == nil || !strings.Contains(err.Error(), "upgrade to echo") {
		t.Errorf("the error of a refused switch is %v", err)
	}
}
