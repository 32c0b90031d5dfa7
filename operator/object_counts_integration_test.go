package operator_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/securepages"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// The metrics count the objects with kept values and the incomplete objects of each version, and the objects that need a
// conversion to the preferred version. Regression: the counting began at once. The list of an API server that did not know of the
// conversion yet had the objects without annotations. No later list showed that, because the resourceVersions were the same.
func TestObjectsOfConvertedKindsAreCounted(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[Lantern1](t), typeOf[Lantern2](t))
	namespace, other, client := cluster.Namespace(t), cluster.Namespace(t), cluster.Client(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lanterns := kube.Namespaced[Lantern1](client, namespace)
	create := func(in, name string, spec LanternSpec1) {
		t.Helper()
		yaretest.Eventually(t, func() error { // an API server refuses requests while it begins to convert
			_, err := kube.Namespaced[Lantern1](client, in).Apply(t.Context(), &Lantern1{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
			return err
		})
	}
	create(namespace, "plain", LanternSpec1{Colour: "red"})
	create(namespace, "noted", LanternSpec1{Colour: "red", Note: "of my aunt"})
	create(namespace, "broken", LanternSpec1{Colour: "panic"})
	create(other, "elsewhere", LanternSpec1{Colour: "panic"})
	process := yaretest.Run(t, cluster.Kubeconfig(), self, "as:lanterns", "run", "--listen", "127.0.0.1:0", "--watch-namespace", namespace)
	address := securepages.AddressOf(t, process)
	want := func(annotated1, annotated2, incomplete, all int) {
		t.Helper()
		const definition = `definition="lanterns.lanterns.versions.example.com"`
		lines := []string{
			fmt.Sprintf(`yare_conversion_annotated_objects{%s,version="v1"} %d`, definition, annotated1),
			fmt.Sprintf(`yare_conversion_annotated_objects{%s,version="v2"} %d`, definition, annotated2),
			fmt.Sprintf(`yare_conversion_incomplete_objects{%s,version="v1"} 0`, definition),
			fmt.Sprintf(`yare_conversion_incomplete_objects{%s,version="v2"} %d`, definition, incomplete),
			fmt.Sprintf(`yare_conversion_unmigrated_objects{%s} 0`, definition),
			fmt.Sprintf(`yare_conversion_dependent_objects{%s} %d`, definition, all),
		}
		yaretest.Eventually(t, func() error {
			response, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				return err
			}
			text, err := io.ReadAll(response.Body)
			_ = response.Body.Close() // it was read to its end
			for _, line := range lines {
				if err == nil && !strings.Contains(string(text), line+"\n") {
					err = fmt.Errorf("the metrics lack %s, and have %v", line, linesWith(string(text), "_objects{"+definition))
				}
			}
			return err
		})
	}
	want(0, 2, 1, 3)
	create(namespace, "broken", LanternSpec1{Colour: "blue"})
	want(0, 1, 0, 3)
	create(namespace, "noted", LanternSpec1{Colour: "red"})
	want(0, 0, 0, 3)
	if err := lanterns.Delete(t.Context(), "plain"); err != nil {
		t.Fatal(err)
	}
	want(0, 0, 0, 2)
	// The cache has the stream of v1. A conversion carries an annotation along that it does not know.
	for _, change := range []struct {
		value     any
		annotated int
	}{{"{}", 1}, {nil, 0}} {
		annotations := map[string]any{"versions.yare.dev/v3.0123456789abcdef": change.value}
		if _, err := lanterns.Patch(t.Context(), "noted", kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": annotations}})); err != nil {
			t.Fatal(err)
		}
		want(change.annotated, change.annotated, 0, 2)
	}
}

// linesWith returns the lines of text that contain part.
func linesWith(text, part string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
