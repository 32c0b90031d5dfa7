package yaretest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/yaretest"
)

func tapDefinition(version string) kube.Definition {
	return kube.Definition{Group: "trips.yaretest.example.com", Version: version, Kind: "Tap", Storage: version == "v1"}
}

type TapSpecV1 struct {
	Flow     int    `json:"flow" crd:"minimum=1,maximum=9"`
	Password string `json:"password,omitempty"`
}

func (TapSpecV1) Definition() kube.Definition { return tapDefinition("v1") }

type TapSpecV2 struct {
	Rate int `json:"rate" crd:"minimum=0,rule='self != 5'"`
}

func (TapSpecV2) Definition() kube.Definition { return tapDefinition("v2") }

type (
	TapV1 = kube.CustomResource[TapSpecV1, kube.None]
	TapV2 = kube.CustomResource[TapSpecV2, kube.None]
)

// RoundTrips finds each mistake of the functions, by the law or by the API server, and warns of a password in an annotation.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	v1, err := kube.TypeOf[TapV1]()
	if err != nil {
		t.Fatal(err)
	}
	v2, err := kube.TypeOf[TapV2]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, v1, v2)
	clamp := func(n int) int { return min(max(n, 1), 9) }
	calls := 0
	for name, c := range map[string]struct {
		toV2 func(a *TapV1, b *TapV2)
		toV1 func(b *TapV2, a *TapV1)
		want []string // each is a part of one failure
	}{
		"right": {
			func(a *TapV1, b *TapV2) {
				if b.Spec.Rate = a.Spec.Flow; b.Spec.Rate == 5 {
					b.Spec.Rate = 6
				}
			},
			func(b *TapV2, a *TapV1) { a.Spec.Flow = clamp(b.Spec.Rate) }, nil,
		},
		"a value outside of the bounds": {
			func(a *TapV1, b *TapV2) { b.Spec.Rate = 2 * a.Spec.Flow },
			func(b *TapV2, a *TapV1) { a.Spec.Flow = b.Spec.Rate },
			[]string{"the function from v2 to v1 gives a value that does not fit the schema of v1 at .spec.flow", "v2 to v1: the API server accepts an object and refuses what it becomes"},
		},
		"a rule in CEL": {
			func(a *TapV1, b *TapV2) { b.Spec.Rate = 5 },
			func(b *TapV2, a *TapV1) { a.Spec.Flow = clamp(b.Spec.Rate) },
			[]string{"v1 to v2: the API server accepts an object and refuses what it becomes"},
		},
		"a counter": {
			func(a *TapV1, b *TapV2) { calls++; b.Spec.Rate = 10 + calls },
			func(b *TapV2, a *TapV1) { a.Spec.Flow = clamp(b.Spec.Rate) },
			[]string{"v1 to v2, back and again gives another object"},
		},
		"a panic": {
			func(a *TapV1, b *TapV2) { b.Spec.Rate = 10 / (a.Spec.Flow - 3) },
			func(b *TapV2, a *TapV1) { a.Spec.Flow = clamp(b.Spec.Rate) },
			[]string{"v1 to v2: the function panicked at"},
		},
	} {
		t.Run(name, func(t *testing.T) { // not in parallel, because the machine is busy with one
			r := record(t, name, func(t testing.TB) {
				yaretest.RoundTrips(t, cluster, conversion.Between(c.toV2, c.toV1))
			})
			for _, want := range c.want {
				if !slices.ContainsFunc(r.failures, func(f string) bool { return strings.Contains(f, want) }) {
					t.Errorf("no failure has %q: %q", want, r.failures)
				}
			}
			if len(c.want) == 0 && len(r.failures) > 0 {
				t.Errorf("it failed with %q", r.failures)
			}
			if want := "from v1 to v2, an annotation keeps .spec.password, which looks like a credential"; !strings.Contains(r.text(), want) {
				t.Errorf("no warning of the password:\n%s", r.text())
			}
		})
	}
	r := record(t, "without", func(t testing.TB) { yaretest.RoundTrips(t, cluster) })
	r.requireFailure(t, "no part converts objects")
}
