package engine

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/yaretest"
)

type (
	bulbSpec1 struct {
		Watts int `json:"watts"`
	}
	bulbSpec2 struct {
		Power int `json:"power"`
	}
	bulb1 = kube.CustomResource[bulbSpec1, kube.None]
	bulb2 = kube.CustomResource[bulbSpec2, kube.None]
)

func (bulbSpec1) Definition() kube.Definition {
	return kube.Definition{Group: "parts.explore.example.com", Version: "v1", Kind: "Bulb", Storage: true}
}

func (bulbSpec2) Definition() kube.Definition {
	return kube.Definition{Group: "parts.explore.example.com", Version: "v2", Kind: "Bulb"}
}

// Each process of parts with a converter published a conversion of its own, so a crash of one process broke the conversions
// of all others, and each start ended the watches of the kind.
func TestConversionsOutliveTheProcessesOfParts(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	first, err := kube.TypeOf[bulb1]()
	if err != nil {
		t.Fatal(err)
	}
	second, err := kube.TypeOf[bulb2]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, first, second)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	launcher := Parts("bulbs", func() []operator.Part {
		return []operator.Part{conversion.Between(func(a *bulb1, b *bulb2) { b.Spec.Power = a.Spec.Watts }, func(b *bulb2, a *bulb1) { a.Spec.Watts = b.Spec.Power })}
	})
	t.Cleanup(func() {
		if err := launcher.close(); err != nil {
			t.Error(err)
		}
	})
	url := func() string {
		return cluster.Kubectl(t, "", "get", "crd", "bulbs.parts.explore.example.com", "-o", "jsonpath={.spec.conversion.webhook.clientConfig.url}")
	}
	start := func() process {
		p, err := launcher.launch(processSettings{config: cluster.Config(), namespace: namespace, output: new(output)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.kill)
		return p
	}
	one := start()
	bulbs := kube.Namespaced[bulb1](client, namespace)
	yaretest.Eventually(t, func() error { // an API server refuses requests while it begins to convert
		_, err := bulbs.Apply(t.Context(), &bulb1{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: bulbSpec1{60}})
		return err
	})
	read := func() error {
		b, err := kube.Namespaced[bulb2](client, namespace).Get(t.Context(), "a")
		if err == nil && b.Spec.Power != 60 {
			err = fmt.Errorf("in v2 it is %+v", b.Spec)
		}
		return err
	}
	yaretest.Eventually(t, read)
	published := url()
	two := start()
	yaretest.Eventually(t, read)
	one.kill()
	if err := read(); err != nil || url() != published {
		t.Errorf("after the end of a process: %v, published at %s and before at %s", err, url(), published)
	}
	two.kill()
	if err := read(); err != nil {
		t.Errorf("after the end of all processes: %v", err)
	}
}
