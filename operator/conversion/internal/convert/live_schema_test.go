package convert

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// The older release of a program knows neither watts nor the note. The newer release has watts in both versions, in an object
// that the older one knows and at the top, and the note in v1 only.
type (
	oldTorch1 struct {
		Colour string `json:"colour,omitempty"`
		Light  struct {
			Size int `json:"size,omitempty"`
		} `json:"light,omitzero"`
	}
	oldTorch2 struct {
		Hue   string `json:"hue,omitempty"`
		Light struct {
			Size int `json:"size,omitempty"`
		} `json:"light,omitzero"`
	}
	torchLight struct {
		Size  int `json:"size,omitempty"`
		Watts int `json:"watts,omitempty" crd:"minimum=1"`
	}
	newTorch1 struct {
		Colour string     `json:"colour,omitempty"`
		Note   string     `json:"note,omitempty"`
		Light  torchLight `json:"light,omitzero"`
		Watts  int        `json:"watts,omitempty" crd:"minimum=1"`
	}
	newTorch2 struct {
		Hue   string     `json:"hue,omitempty"`
		Light torchLight `json:"light,omitzero"`
		Watts int        `json:"watts,omitempty" crd:"minimum=1"`
	}
)

func torchDefinition(version string) kube.Definition {
	return kube.Definition{Group: "torches.example.com", Version: version, Kind: "Torch", Storage: version == "v1"}
}

func (oldTorch1) Definition() kube.Definition { return torchDefinition("v1") }
func (oldTorch2) Definition() kube.Definition { return torchDefinition("v2") }
func (newTorch1) Definition() kube.Definition { return torchDefinition("v1") }
func (newTorch2) Definition() kube.Definition { return torchDefinition("v2") }

// torchKinds returns the kinds of the older release, without and with the schemas of the cluster, and that of the newer one.
func torchKinds(t *testing.T) (withoutLive, older, newer *Kind) {
	t.Helper()
	type (
		old1 = kube.CustomResource[oldTorch1, kube.None]
		old2 = kube.CustomResource[oldTorch2, kube.None]
		new1 = kube.CustomResource[newTorch1, kube.None]
		new2 = kube.CustomResource[newTorch2, kube.None]
	)
	withoutLive, err := NewKind([]Version{versionOf[old1](t), versionOf[old2](t)}, []*Step{NewStep(
		func(a *old1, b *old2) { b.Spec.Hue, b.Spec.Light = a.Spec.Colour, a.Spec.Light },
		func(b *old2, a *old1) { a.Spec.Colour, a.Spec.Light = b.Spec.Hue, b.Spec.Light })})
	if err != nil {
		t.Fatal(err)
	}
	newer, err = NewKind([]Version{versionOf[new1](t), versionOf[new2](t)}, []*Step{NewStep(
		func(a *new1, b *new2) { b.Spec = newTorch2{a.Spec.Colour, a.Spec.Light, a.Spec.Watts} },
		func(b *new2, a *new1) {
			a.Spec = newTorch1{Colour: b.Spec.Hue, Light: b.Spec.Light, Watts: b.Spec.Watts}
		})})
	if err != nil {
		t.Fatal(err)
	}
	live := make(map[string]*crd.Schema)
	for _, v := range newer.Versions() {
		live[v.Resource.Version] = v.Schema
	}
	if older, err = withoutLive.WithLiveSchemas(live); err != nil {
		t.Fatal(err)
	}
	return withoutLive, older, newer
}

// torch returns a Torch with the members of a spec.
func torch(version, spec string) string {
	return `{"apiVersion":"torches.example.com/` + version + `","kind":"Torch","metadata":{"name":"a","uid":"u"},"spec":{` + spec + `}}`
}

// Two releases convert by turns. An edit of a field that only the newer release knows was lost, if the older one converted it:
// it was kept for one version, and the other version had a value too.
func TestFieldsThatOnlyTheClusterKnows(t *testing.T) {
	t.Parallel()
	withoutLive, older, newer := torchKinds(t)
	for name, spec := range map[string]string{
		"everything": `"colour":"red","light":{"size":1,"watts":2},"note":"n","watts":40`,
		"only new":   `"light":{"watts":2},"note":"n","watts":40`,
		"only top":   `"watts":40`,
		"not valid":  `"light":{"watts":0},"note":"n","watts":"x"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := convertText(t, older, torch("v1", spec), "v2")
			if name == "only top" && second.HasKept {
				t.Errorf("an annotation keeps a field that is copied: %s", second.Object)
			}
			home := convertText(t, older, string(second.Object), "v1")
			if got, want := specText(home.Object), "{"+spec+"}"; got != want {
				t.Errorf("it comes home as %s, want %s", got, want)
			}
		})
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 6))
		kind := func() *Kind { return []*Kind{older, newer}[random.IntN(2)] }
		stored := torch("v1", `"colour":"red","light":{"size":1,"watts":2},"note":"n","watts":40`)
		watts, inner := 40, 2
		for range 10 {
			if random.IntN(2) == 0 { // an edit in v2
				edited := string(convertText(t, kind(), stored, "v2").Object)
				edited = strings.Replace(edited, fmt.Sprintf(`"watts":%d}`, inner), fmt.Sprintf(`"watts":%d}`, inner+1), 1)
				edited = strings.Replace(edited, fmt.Sprintf(`"watts":%d}}`, watts), fmt.Sprintf(`"watts":%d}}`, watts+1), 1)
				stored = string(convertText(t, kind(), edited, "v1").Object)
			} else {
				stored = strings.Replace(stored, fmt.Sprintf(`"watts":%d}`, inner), fmt.Sprintf(`"watts":%d}`, inner+1), 1)
				stored = strings.Replace(stored, fmt.Sprintf(`"watts":%d}}`, watts), fmt.Sprintf(`"watts":%d}}`, watts+1), 1)
			}
			watts, inner = watts+1, inner+1
			want := fmt.Sprintf(`{"colour":"red","light":{"size":1,"watts":%d},"note":"n","watts":%d}`, inner, watts)
			if got := specText([]byte(stored)); got != want {
				t.Fatalf("seed %d: it is %s, want %s", seed, got, want)
			}
		}
	}
	laws := CheckLaws(older, [][]byte{
		[]byte(torch("v1", `"colour":"red","light":{"size":1,"watts":2},"note":"n","watts":40`)), []byte(torch("v1", `"light":{"watts":2},"note":"n"`)),
		[]byte(torch("v2", `"hue":"red","light":{"size":1,"watts":2},"watts":40`)), []byte(torch("v2", `"watts":40`)),
	})
	if len(laws.Problems) > 0 || laws.Edits == 0 {
		t.Errorf("after %d edits: %v", laws.Edits, laws.Problems)
	}
	// Without the schemas of the cluster the value stands in an annotation at home.
	second := convertText(t, withoutLive, torch("v1", `"watts":40`), "v2")
	if home := convertText(t, withoutLive, string(second.Object), "v1"); !home.HasKept {
		t.Errorf("it comes home as %s", home.Object)
	}
	// A schema that is as the own ones changes nothing.
	same := make(map[string]*crd.Schema)
	for _, v := range withoutLive.Versions() {
		same[v.Resource.Version] = v.Schema
	}
	if k, err := withoutLive.WithLiveSchemas(same); err != nil || len(k.copied) != 0 || k.checks["v1"] != withoutLive.checks["v1"] {
		t.Errorf("with the own schemas: %v, %v", k.copied, err)
	}
}

// A change of a definition that is not about its schemas, such as another bundle, makes API servers convert all objects anew.
// Regression: for ten seconds after the change a Handler did not know the fields that only the cluster has.
func TestFieldsOfTheClusterAreKnownWhileADefinitionChanges(t *testing.T) {
	t.Parallel()
	withoutLive, _, newer := torchKinds(t)
	synctest.Test(t, func(t *testing.T) {
		h, err := NewHandler([]*Kind{withoutLive}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		const delay = 10 * time.Second
		check := func(when string, want string) {
			t.Helper()
			kind := h.endpoints[withoutLive.Path()].kindAt(time.Now())
			if got := specText(convertText(t, kind, torch("v1", `"watts":40`), "v2").Object); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		use := func(from *Kind) {
			schemas := make(map[string]*crd.Schema)
			for _, v := range from.Versions() {
				schemas[v.Resource.Version] = v.Schema
			}
			h.UseSchemas(withoutLive.Path(), schemas, delay)
		}
		use(newer)
		check("before API servers have seen the schemas", "{}")
		time.Sleep(delay)
		check("after", `{"watts":40}`)
		use(newer)
		check("after another change", `{"watts":40}`)
		time.Sleep(delay / 2)
		use(withoutLive)
		check("after a change that removes the field", `{"watts":40}`)
		time.Sleep(delay)
		check("without the field", "{}")
	})
}

// specText returns the JSON of the spec of an object.
func specText(object []byte) string {
	o, _ := jsontree.ParseObject(object)
	return string(jsontree.Append(nil, o["spec"]))
}
