package crd_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/yaretest"
)

// embeddedObject is an object within an object.
type embeddedObject struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	X                 string `json:"x"`
}

type keyed struct {
	K string `json:"k" crd:"nullable"`
	V string `json:"v"`
}

type defaulted struct {
	A string `json:"a"`
	B string `json:"b" crd:"default=x"`
}

// verdictCases returns types about which crd and a server could disagree.
func verdictCases() []schemaCase {
	return []schemaCase{
		{name: "embedded resource", of: held[struct {
			E embeddedObject `json:"e" crd:"embeddedResource"`
		}]},
		{name: "object without the tag", of: held[struct {
			E embeddedObject            `json:"e"`
			F map[string]embeddedObject `json:"f,omitempty" crd:"values.embeddedResource"`
		}]},
		{name: "default null", of: held[struct {
			N *string `json:"n,omitempty" crd:"nullable,default=null"`
			I *int    `json:"i,omitempty" crd:"nullable,default=null"`
		}]},
		{name: "set of nullable items", of: held[struct {
			S []string `json:"s,omitempty" crd:"listType=set,items.nullable"`
		}]},
		{name: "map that keeps unknown fields", of: held[struct {
			M map[string]string `json:"m,omitempty" crd:"preserveUnknownFields"`
		}]},
		{name: "nullable key", of: held[struct {
			L []keyed `json:"l,omitempty" crd:"listType=map,listMapKey=k"`
		}]},
		{name: "default that is a multiple", of: held[struct {
			N float64 `json:"n,omitempty" crd:"multipleOf=0.1,default=0.3"`
			M float64 `json:"m,omitempty" crd:"multipleOf=0.1,default=-0.7"`
		}]},
		{name: "default that is no multiple", of: held[struct {
			N float64 `json:"n,omitempty" crd:"multipleOf=0.1,default=0.35"`
		}]},
		{name: "bounds that their formats can hold", of: held[struct {
			A int64   `json:"a,omitempty" crd:"minimum=-9223372036854774784,maximum=9223372036854774784"`
			B int32   `json:"b,omitempty" crd:"minimum=-2147483648,exclusiveMaximum=2147483647,multipleOf=1e3"`
			C float32 `json:"c,omitempty" crd:"minimum=-3.4028234663852886e38,maximum=0.1"`
			D float64 `json:"d,omitempty" crd:"minimum=0.5,maximum=1e300"`
		}]},
		{name: "default that is no time", of: held[struct {
			T metav1.Time `json:"t,omitempty" crd:"default=tomorrow"`
		}]},
		{name: "default that is no duration", of: held[struct {
			D string `json:"d,omitempty" crd:"format=duration,default=zzz"`
		}]},
		{name: "default that is no address", of: held[struct {
			A string `json:"a,omitempty" crd:"format=ipv4,default=nowhere"`
			B string `json:"b,omitempty" crd:"format=byte,default='*'"`
			C string `json:"c,omitempty" crd:"format=uuid,default=x"`
			D string `json:"d,omitempty" crd:"format=k8s-short-name,default=A_B"`
		}]},
		{name: "defaults of formats", of: held[struct {
			A string      `json:"a,omitempty" crd:"format=byte,default='aGk='"`
			B string      `json:"b,omitempty" crd:"format=cidr,default=10.0.0.0/8"`
			C string      `json:"c,omitempty" crd:"format=date,default=2026-01-02"`
			D metav1.Time `json:"d,omitempty" crd:"default='2026-01-02T03:04:05Z'"`
			E string      `json:"e,omitempty" crd:"format=datetime,default='2026-01-02T03:04:05+01:00'"`
			F string      `json:"f,omitempty" crd:"format=duration,default=1h30m"`
			G string      `json:"g,omitempty" crd:"format=email,default='a.b+c@d-e.example.com'"`
			H string      `json:"h,omitempty" crd:"format=hostname,default=a.example.com"`
			I string      `json:"i,omitempty" crd:"format=ipv4,default=1.2.3.4"`
			J string      `json:"j,omitempty" crd:"format=ipv6,default='::1'"`
			K string      `json:"k,omitempty" crd:"format=k8s-long-name,default=a.b"`
			L string      `json:"l,omitempty" crd:"format=k8s-short-name,default=a-b"`
			M string      `json:"m,omitempty" crd:"format=mac,default='01:23:45:67:89:ab'"`
			N string      `json:"n,omitempty" crd:"format=password,default=x"`
			O string      `json:"o,omitempty" crd:"format=uri,default='https://example.com/a?b=c'"`
			P string      `json:"p,omitempty" crd:"format=uuid,default=0b6e6f3c-2d57-4b3b-8a94-0123456789ab"`
			Q string      `json:"q,omitempty" crd:"format=hostname,default=localhost"`
			R string      `json:"r,omitempty" crd:"format=duration,default=-1.5s"`
			S string      `json:"s,omitempty" crd:"format=ipv6,default='::ffff:1.2.3.4'"`
			T string      `json:"t,omitempty" crd:"format=cidr,default='fe80::/10'"`
			U string      `json:"u,omitempty" crd:"format=date-time,default='2026-01-02T03:04:05.123456789Z'"`
			W string      `json:"w,omitempty" crd:"format=mac,default='0123.4567.89ab'"`
		}]},
		{name: "any, and odd names", of: held[struct {
			A   map[string]any `json:"a,omitempty" crd:"values.nullable"`
			O   any            `json:"o,omitempty" crd:"default='{\"a\":1}'"`
			W   string         `json:"a-b.c,omitempty" crd:"column"`
			Q   [3]string      `json:"q" crd:"listType=set"`
			Big int64          `json:"big" crd:"maximum=9223372036854774784"`
		}]},
		{name: "lists in lists", of: held[struct {
			L [][]keyed `json:"l,omitempty" crd:"items.listType=map,items.listMapKey=v"`
		}]},
		{name: "pattern", of: held[struct {
			P string `json:"p,omitempty" crd:"pattern='(?P<x>a)\\pL'"`
		}]},
		{name: "default of a list map with two equal keys", of: held[struct {
			L []defaulted `json:"l,omitempty" crd:"listType=map,listMapKey=a,listMapKey=b,default='[{\"a\":\"1\"},{\"a\":\"1\"}]'"`
		}]},
		{name: "default of a set with two equal items", of: held[struct {
			S []string `json:"s,omitempty" crd:"listType=set,default='[\"a\",\"a\"]'"`
		}]},
		{name: "default of a nullable struct", of: held[struct {
			I defaulted `json:"i" crd:"default='{\"a\":\"1\"}',nullable"`
		}]},
		{name: "names of an object's own fields", of: held[struct {
			Kind       string `json:"kind"`
			APIVersion string `json:"apiVersion"`
			Metadata   string `json:"metadata"`
			Dollar     string `json:"$ref,omitempty"`
		}]},
		{name: "rule with a message", of: held[struct {
			Int int `json:"int,omitempty" crd:"rule='self > 0',message=x"`
		}]},
	}
}

// What crd accepts, a server accepts: a server does not name the Go type that is wrong.
func TestServerAcceptsWhatCRDAccepts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	cluster := yaretest.Shared(t)
	accepted := 0
	for i, c := range verdictCases() {
		d, err := c.of()
		if err != nil {
			t.Logf("%s: refused by crd: %v", c.name, err)
			continue
		}
		accepted++
		var text strings.Builder
		if err := crd.WriteYAML(&text, renamed(d, 1000+i)); err != nil {
			t.Fatal(err)
		}
		if _, stderr, err := cluster.TryKubectl(t, text.String(), "apply", "--server-side", "--dry-run=server", "-f", "-"); err != nil {
			t.Errorf("%s: accepted by crd, refused by the server: %s", c.name, strings.TrimSpace(stderr))
		}
	}
	if accepted < 8 {
		t.Errorf("crd accepts only %d of the types", accepted)
	}
}
