package engine

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

type freeSpec struct {
	Values map[string]any `json:"values"`
}

func (freeSpec) Definition() kube.Definition {
	return kube.Definition{Group: "engine.example.com", Version: "v1", Kind: "Free"}
}

// Bug: the sample of an exploration had 9007199254740992 in place of the integer 9007199254740993.
func TestSampleKeepsIntegers(t *testing.T) {
	t.Parallel()
	sample, err := Sample(&kube.CustomResource[freeSpec, kube.None]{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: freeSpec{Values: map[string]any{"id": int64(9007199254740993), "ratio": 1.5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := `"spec":{"values":{"id":9007199254740993,"ratio":1.5}}`; !strings.Contains(string(sample), want) {
		t.Errorf("the sample is %s, want %s in it", sample, want)
	}
}
