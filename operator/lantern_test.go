package operator

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// The kind Lantern is stored in v1. Only v1 has a note. A colour with the name panic makes the function to v2 panic.
type (
	LanternSpec1 struct {
		Colour string `json:"colour,omitempty"`
		Note   string `json:"note,omitempty"`
	}
	LanternSpec2 struct {
		Hue string `json:"hue,omitempty"`
	}
	Lantern1 = kube.CustomResource[LanternSpec1, kube.None]
	Lantern2 = kube.CustomResource[LanternSpec2, kube.None]
)

func (LanternSpec1) Definition() kube.Definition {
	return kube.Definition{Group: "lanterns.versions.example.com", Version: "v1", Kind: "Lantern", Storage: true}
}

func (LanternSpec2) Definition() kube.Definition {
	return kube.Definition{Group: "lanterns.versions.example.com", Version: "v2", Kind: "Lantern"}
}

// lanternConverter is the converter of Lanterns.
func lanternConverter() Part {
	return Convert(func(a *Lantern1, b *Lantern2) {
		if a.Spec.Colour == "panic" {
			panic("this colour is not known")
		}
		b.Spec.Hue = a.Spec.Colour
	}, func(b *Lantern2, a *Lantern1) { a.Spec.Colour = b.Spec.Hue })
}

// runLanterns is a program with a converter, and with a controller on the storage version.
func runLanterns() {
	Main(lanternConverter(), controller.New(reconcileLantern1))
}

func reconcileLantern1(context.Context, *Lantern1, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

func reconcileLantern2(context.Context, *Lantern2, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// A replica was not ready before the streams of the kinds that it converts were listed. If no other replica is ready, API servers
// call nobody for the conversion that the list needs, so no replica became ready.
func TestReadinessDoesNotWaitForConvertedKinds(t *testing.T) {
	t.Parallel()
	stream := func(o kube.Object) wire.Stream {
		found, err := kube.TypeOfObject(o)
		if err != nil {
			t.Fatal(err)
		}
		return wire.Stream{Resource: found.Resource}
	}
	r := readiness{
		isEnding: func() bool { return false }, webhooks: unservedWebhooks{}, converted: convertedKinds([]Part{lanternConverter()}),
		cached: func() []cache.Stats {
			return []cache.Stats{{Stream: stream(&Lantern2{})}, {Stream: stream(&gadget{})}}
		},
		uncached: func() []follow.StreamState { return []follow.StreamState{{Stream: stream(&Lantern1{})}} },
	}
	if got := strings.Join(r.unreadyReasons(), "\n"); got != "gadgets.example.com is not synced" {
		t.Errorf("the replica is not ready because %s", got)
	}
}

// A controller that does not use the storage version costs conversions. In yare dev and in tests the log says so.
func TestWarningOfAControllerOnAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		part Part
		want string
	}{
		"stored": {controller.New(reconcileLantern1), ""},
		"other":  {controller.New(reconcileLantern2), "kind=Lantern.lanterns.versions.example.com version=v2 stored=v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := []Part{lanternConverter(), test.part}
			needs, err := needsOf(parts)
			if err != nil {
				t.Fatal(err)
			}
			conversions, _, err := conversionsOf(parts)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			conversions.warnOfVersions(needs.Reconciles, slog.New(slog.NewTextHandler(&log, nil)))
			if text := log.String(); (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the log is %q", text)
			}
		})
	}
}

type (
	scaledLantern1 struct {
		Replicas int32 `json:"replicas,omitempty"`
	}
	scaledLantern2 struct {
		Count int32 `json:"count,omitempty"`
	}
)

func (scaledLantern1) Definition() kube.Definition {
	return kube.Definition{Group: "scaled.example.com", Version: "v1", Kind: "Lantern", Storage: true, Scale: &kube.ScalePaths{}}
}

func (scaledLantern2) Definition() kube.Definition {
	return kube.Definition{Group: "scaled.example.com", Version: "v2", Kind: "Lantern"}
}

// The manifests have a policy for the scale of each version that has one.
func TestPoliciesOfScales(t *testing.T) {
	t.Parallel()
	type (
		status struct {
			Replicas int32 `json:"replicas,omitempty"`
		}
		first  = kube.CustomResource[scaledLantern1, status]
		second = kube.CustomResource[scaledLantern2, status]
	)
	conversions, _, err := conversionsOf([]Part{
		lanternConverter(),
		Convert(func(a *first, b *second) { b.Spec.Count = a.Spec.Replicas }, func(b *second, a *first) { a.Spec.Replicas = b.Spec.Count }),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range conversions.addTo([]manifests.Object{{"kind": "Deployment"}}, "lanterns", "shop") {
		if metadata, ok := o["metadata"].(manifests.Object); ok && manifests.Kind(o) == "ValidatingAdmissionPolicy" {
			names = append(names, metadata["name"].(string))
		}
	}
	if got := strings.Join(names, " "); got != "lanterns.shop-incomplete lanterns.shop-incomplete-scale.v1.lanterns.scaled.example.com" {
		t.Errorf("the policies are %s", got)
	}
}
