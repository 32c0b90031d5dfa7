package twins

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/yaretest"
)

// The operators of this file convert their objects between two versions.

// BoardSpec is the desired state of a Board in v1.
type BoardSpec struct {
	Text string `json:"text"`
}

// Definition returns the definition of Boards of v1, which are stored.
func (BoardSpec) Definition() kube.Definition {
	return kube.Definition{Group: "twins.example.com", Version: "v1", Kind: "Board", Storage: true}
}

// Board is a text on a page.
type Board = kube.CustomResource[BoardSpec, SiteStatus]

// BoardSpecV2 is the desired state of a Board in v2.
type BoardSpecV2 struct {
	Text string `json:"text"`
	// Since is from when on the text is shown. It is new in v2.
	Since *metav1.Time `json:"since,omitempty"`
}

// Definition returns the definition of Boards of v2.
func (BoardSpecV2) Definition() kube.Definition {
	return kube.Definition{Group: "twins.example.com", Version: "v2", Kind: "Board"}
}

// BoardV2 is a Board of v2.
type BoardV2 = kube.CustomResource[BoardSpecV2, SiteStatus]

// applyBoard applies the page of a Board. It reads Boards of v2, so that its reads fail without a conversion.
func applyBoard(ctx context.Context, b *BoardV2, c *kube.Client) (controller.Action, error) {
	_, err := kube.Apply(ctx, c, kube.OwnedBy(b, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name}, Data: map[string]string{"text": b.Spec.Text},
	}))
	return controller.Done(), err
}

// converting returns a function that makes the parts of a program with a converter. since returns the value of a field that
// v1 does not have.
func converting(since func() *metav1.Time) func() []operator.Part {
	toV2 := func(b *Board, v2 *BoardV2) {
		v2.Spec, v2.Status = BoardSpecV2{Text: b.Spec.Text, Since: since()}, b.Status
	}
	toV1 := func(v2 *BoardV2, b *Board) { b.Spec, b.Status = BoardSpec{Text: v2.Spec.Text}, v2.Status }
	return func() []operator.Part {
		return []operator.Part{controller.New(applyBoard, controller.Owns[corev1.ConfigMap]()), conversion.Between(toV2, toV1)}
	}
}

// sinceNow returns the present time, so that an object is another one at each call.
func sinceNow() *metav1.Time { return new(metav1.Now()) }

// sinceEver returns no time.
func sinceEver() *metav1.Time { return nil }

// conversionTwin returns the twin of this file. The user applies a Board of v2, so that each write is converted.
func conversionTwin() twin {
	return twin{
		name: "converts by the time of the call", wrong: converting(sinceNow), right: converting(sinceEver),
		steps: []finding.Step{
			{Name: "apply web", Apply: []json.RawMessage{json.RawMessage(`{"apiVersion": "twins.example.com/v2", "kind": "Board", "metadata": {"name": "web"}, "spec": {"text": "hello"}}`)}},
			{Name: "delete web", Delete: []faults.Object{{Resource: "boards.twins.example.com", Name: "web"}}},
		},
		finds: []faults.Kind{faults.Reread}, verdict: finding.Reread,
	}
}

// An exploration finds a converter that depends on the time, and nothing in a right one, whatever happens to its calls. It has a
// cluster of its own, because a kind has one conversion in a cluster, and its faults end the watches of everybody.
func TestExploreConversions(t *testing.T) {
	if testing.Short() || os.Getenv(modeVariable) == modeRight {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	cluster := yaretest.New(t)
	v1, err := kube.TypeOf[Board]()
	if err != nil {
		t.Fatal(err)
	}
	v2, err := kube.TypeOf[BoardV2]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, v1, v2)
	twin := conversionTwin()
	options := engine.Settings{Config: cluster.Config(), Steps: twin.steps, Values: twin.fieldValues(), Seed: seedOf(t), Only: twin.kinds()}
	requireFound(t, twin, options)
	kinds, err := faults.ParseKinds("conversion")
	if err != nil {
		t.Fatal(err)
	}
	options.Only = append(kinds, faults.Reread)
	requireHappened(t, requireNotFound(t, engine.Parts("twin", twin.right), options), options.Only)
}
