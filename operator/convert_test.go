package operator_test

import (
	"context"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
)

// lampDefinition is the definition of a version of Lamps. The versions of a kind differ in their fields: a Lamp of v1 has one
// text, and a Lamp of v2 has two.
func lampDefinition(group, version string, isStored bool) kube.Definition {
	return kube.Definition{Group: group, Version: version, Kind: "Lamp", Storage: isStored}
}

type lampV1 struct {
	Colour string `json:"colour"`
}

func (lampV1) Definition() kube.Definition { return lampDefinition("lamps.example.com", "v1", true) }

type lampV2 struct {
	Hue   string `json:"hue"`
	Shade string `json:"shade,omitempty"`
}

func (lampV2) Definition() kube.Definition {
	return lampDefinition("lamps.example.com", "v2", false)
}

type (
	lamp1 = kube.CustomResource[lampV1, kube.None]
	lamp2 = kube.CustomResource[lampV2, kube.None]
)

func toLamp2(a *lamp1, b *lamp2) {
	b.Spec.Hue, b.Spec.Shade, _ = strings.Cut(a.Spec.Colour, "-")
}

func toLamp1(b *lamp2, a *lamp1) {
	a.Spec.Colour = b.Spec.Hue
	if b.Spec.Shade != "" {
		a.Spec.Colour += "-" + b.Spec.Shade
	}
}

func idleLamp[T any, P kube.DefinedObjectOf[T]]() operator.Part {
	return operator.Watcher[T, P](func(ctx context.Context, _ *kube.Client) error { <-ctx.Done(); return nil })
}

// A mistake of converters is an error before any request.
func TestWrongConverters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts []operator.Part
		want  string
	}{
		"two versions without a converter": {
			[]operator.Part{idleLamp[lamp1](), idleLamp[lamp2]()},
			"the versions v1 and v2 of Lamp.lamps.example.com have different fields, and nothing converts the objects",
		},
		"a nil function": {[]operator.Part{conversion.Between[lamp1, lamp2](nil, toLamp1)}, "nil"},
		"one version twice": {
			[]operator.Part{conversion.Between(func(*lamp1, *lamp1) {}, func(*lamp1, *lamp1) {})}, "v1",
		},
		"a second path": {[]operator.Part{conversion.Between(toLamp2, toLamp1), conversion.Between(toLamp1, toLamp2)}, "Lamp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := operator.Run(t.Context(), kube.NewClientFromHandler(nil), c.parts...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}
