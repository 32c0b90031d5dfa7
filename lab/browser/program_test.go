package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/livepage"
	"github.com/yare-go/yare/yaretest"
)

// NoteSpec is what a user asks for.
type NoteSpec struct {
	// Text is the text in the ConfigMap. A text that begins with "fail " is the error of the reconcile.
	Text string `json:"text"`
	// Secret is the text in the Secret.
	Secret string `json:"secret,omitempty"`
}

// NoteStatus is what the operator reports.
type NoteStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (NoteSpec) Definition() kube.Definition {
	return kube.Definition{Group: "browser.example.com", Version: "v1", Kind: "Note"}
}

// Note is a text in a ConfigMap and a text in a Secret.
type Note = kube.CustomResource[NoteSpec, NoteStatus]

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		operator.Main(controller.New(reconcile, controller.Owns[corev1.ConfigMap](), controller.Owns[corev1.Secret]()), livepage.New())
	}
	os.Exit(m.Run())
}

// busyText is the text of a Note that is reconciled five times a second, without a write.
const busyText = "busy"

func reconcile(ctx context.Context, note *Note, c *kube.Client) (controller.Action, error) {
	if text, isFailing := strings.CutPrefix(note.Spec.Text, "fail "); isFailing {
		return controller.Done(), errors.New(text)
	}
	if note.Spec.Text == busyText {
		return controller.RequeueAfter(200 * time.Millisecond), nil
	}
	meta := metav1.ObjectMeta{Namespace: note.Namespace, Name: note.Name}
	config := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"text": note.Spec.Text}}
	if _, err := kube.Apply(ctx, c, kube.OwnedBy(note, config)); err != nil {
		return controller.Done(), err
	}
	if note.Spec.Secret != "" {
		secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"secret": []byte(note.Spec.Secret)}}
		if _, err := kube.Apply(ctx, c, kube.OwnedBy(note, secret)); err != nil {
			return controller.Done(), err
		}
	}
	kube.SetCondition(ctx, &note.Status.Conditions, note, "Ready", note.Spec.Text != "", "Written", "the text is "+note.Spec.Text)
	return controller.Done(), c.ApplyStatus(ctx, note)
}

// startProgram starts the program with its page for some namespaces, and returns the URL of the page.
func startProgram(t *testing.T, cluster *yaretest.Cluster, namespaces ...string) string {
	t.Helper()
	yaretest.Define[Note](t, cluster)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--live-page", "--listen", "127.0.0.1:0"}
	for _, namespace := range namespaces {
		args = append(args, "--watch-namespace", namespace)
	}
	p := cluster.Run(t, self, args...)
	const message = "serving health and metrics"
	p.WaitForLog(t, message)
	p.WaitForLog(t, "serving the live page")
	for _, line := range p.Log() {
		var logged struct{ Msg, Address string }
		if strings.Contains(line, message) && json.Unmarshal([]byte(line), &logged) == nil {
			return "http://" + logged.Address + "/live-page"
		}
	}
	t.Fatalf("the log has no address: %v", p.Log())
	return ""
}

// notes returns the API for Notes in a new namespace, and the namespace.
func notes(t *testing.T, cluster *yaretest.Cluster) (api kube.API[Note], namespace string) {
	t.Helper()
	namespace = cluster.Namespace(t)
	return kube.Namespaced[Note](cluster.Client(t), namespace), namespace
}

// startWithNotes starts the program for a new namespace. It returns the cluster, the API for Notes in the namespace, the
// namespace, and the URL of the page.
func startWithNotes(t *testing.T) (cluster *yaretest.Cluster, api kube.API[Note], namespace, page string) {
	t.Helper()
	cluster = yaretest.Shared(t)
	api, namespace = notes(t, cluster)
	return cluster, api, namespace, startProgram(t, cluster, namespace)
}

// create creates a Note.
func create(t *testing.T, api kube.API[Note], name, text string) {
	t.Helper()
	note := &Note{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: NoteSpec{Text: text}}
	if _, err := api.Create(t.Context(), note); err != nil {
		t.Fatal(fmt.Errorf("create %s: %w", name, err))
	}
}

// setText changes the text of a Note.
func setText(t *testing.T, api kube.API[Note], name, text string) {
	t.Helper()
	if _, err := api.Modify(t.Context(), name, func(n *Note) error { n.Spec.Text = text; return nil }); err != nil {
		t.Fatal(fmt.Errorf("change %s: %w", name, err))
	}
}
