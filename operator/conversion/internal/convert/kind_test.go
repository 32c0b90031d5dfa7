package convert

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// versionOf returns the version of a Go type.
func versionOf[T any, P kube.DefinedObjectOf[T]](t testing.TB) Version {
	t.Helper()
	goType, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	v, err := VersionOf(goType)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// cronKind returns the kind CronJob.
func cronKind(t testing.TB) *Kind {
	t.Helper()
	k, err := NewKind([]Version{versionOf[cron1](t), versionOf[cron2](t)}, []*Step{NewStep(cronToV2, cronToV1)})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// cronObject returns a CronJob with the members of a spec.
func cronObject(version, spec string) string {
	return `{"apiVersion":"batch.example.com/` + version + `","kind":"CronJob","metadata":{"name":"a","namespace":"shop","uid":"u1"},"spec":{` + spec + `}}`
}

const cronTemplate = `,"template":{"spec":{"containers":[{"name":"main"}]}}`

// benchmarkObject returns an object of 2 KB.
func benchmarkObject(schedule string) string {
	return cronObject("v1", `"schedule":`+schedule+`,"ports":[{"name":"a","port":1},{"name":"b","port":2}],"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"main","image":"registry.example.com/app:1","args":["`+
		strings.Repeat(`an-argument-of-the-program","`, 30)+`"],"env":[{"name":"A","value":"1"},{"name":"B","value":"`+strings.Repeat("x", 600)+`"}]}]}}`)
}

// processorTime returns the processor time of the process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkConvert measures the conversion of an object of 2 KB. One object takes at most 0.2 ms of processor time.
func BenchmarkConvert(b *testing.B) {
	k := cronKind(b)
	plain := []byte(benchmarkObject(`"5 * * * *"`))
	kept := []byte(benchmarkObject(`"@hourly"`))
	c, err := k.Convert(kept, "v2")
	if err != nil || !c.HasKept || c.IsIncomplete {
		b.Fatal(err, string(c.Object))
	}
	b.Logf("the object has %d bytes", len(plain))
	for name, c := range map[string]struct {
		object []byte
		target string
	}{"plain": {plain, "v2"}, "keep": {kept, "v2"}, "return": {c.Object, "v1"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			began := processorTime()
			for b.Loop() {
				if _, err := k.Convert(c.object, c.target); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(processorTime()-began)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}

type (
	otherSpec struct {
		A string `json:"a"`
	}
	other = kube.CustomResource[otherSpec, kube.None]

	foreignSpec struct {
		A string `json:"a"`
	}
	foreign = kube.CustomResource[foreignSpec, kube.None]

	cron3Spec struct {
		A string `json:"a,omitempty"`
	}
	cron3 = kube.CustomResource[cron3Spec, kube.None]
)

func (otherSpec) Definition() kube.Definition {
	return kube.Definition{Group: "batch.example.com", Version: "v2", Kind: "Other"}
}

func (foreignSpec) Definition() kube.Definition {
	return kube.Definition{Group: "batch.example.com", Version: "v4", Kind: "CronJob", Foreign: true}
}

func (cron3Spec) Definition() kube.Definition {
	return kube.Definition{Group: "batch.example.com", Version: "v3", Kind: "CronJob", NotServed: true}
}

// Each error of a kind names the culprit and the way out.
func TestKindsThatAreWrong(t *testing.T) {
	t.Parallel()
	v1, v2, v3 := versionOf[cron1](t), versionOf[cron2](t), versionOf[cron3](t)
	with := func(v Version, isStorage bool) Version {
		v.Storage = isStorage
		return v
	}
	step12 := NewStep(cronToV2, cronToV1)
	step23 := NewStep(func(*cron2, *cron3) {}, func(*cron3, *cron2) {})
	step31 := NewStep(func(*cron3, *cron1) {}, func(*cron1, *cron3) {})
	badPattern := with(v1, true)
	badPattern.Schema = &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{"spec": {Type: "string", Pattern: "("}}}
	long := v2
	long.Resource.Version = strings.Repeat("v", 47)
	for name, c := range map[string]struct {
		versions []Version
		steps    []*Step
		want     string
	}{
		"a nil function":       {[]Version{v1, v2}, []*Step{NewStep(cronToV2, nil)}, "between v1 and v2 of CronJob.batch.example.com: its function from v2 to v1 is nil"},
		"the other nil":        {[]Version{v1, v2}, []*Step{NewStep(nil, cronToV1)}, "its function from v1 to v2 is nil"},
		"one version":          {[]Version{v1}, []*Step{NewStep(func(*cron1, *cron1) {}, func(*cron1, *cron1) {})}, "between v1 and v1 of CronJob.batch.example.com is between one version"},
		"two kinds":            {[]Version{v1, v2}, []*Step{NewStep(func(*cron1, *other) {}, func(*other, *cron1) {})}, "is between two kinds"},
		"a step of another":    {[]Version{versionOf[other](t)}, []*Step{step12}, "is given for the kind Other.batch.example.com"},
		"a foreign kind":       {[]Version{v1}, []*Step{NewStep(func(*cron1, *foreign) {}, func(*foreign, *cron1) {})}, "the Definition is Foreign"},
		"versions of two":      {[]Version{v1, versionOf[other](t)}, nil, "are two kinds"},
		"a version twice":      {[]Version{v1, v1, v2}, []*Step{step12}, "has the version v1 twice"},
		"no path":              {[]Version{v1, v2, v3}, []*Step{step12}, "has no conversion between v3 and the storage version v1: add a conversion between v3 and one of v1, v2"},
		"two paths":            {[]Version{v1, v2, v3}, []*Step{step12, step23, step31}, "between v3 and v1 of CronJob.batch.example.com is a second path"},
		"a step twice":         {[]Version{v1, v2}, []*Step{step12, step12}, "is a second path between v1 and v2"},
		"no storage version":   {[]Version{with(v1, false), v2}, []*Step{step12}, "has a conversion and no storage version: set Storage"},
		"two storage versions": {[]Version{v1, with(v2, true)}, []*Step{step12}, "has 2 storage versions, v1 and v2: set Storage in one Definition only"},
		"an unknown version":   {[]Version{v1}, []*Step{step12}, "nothing else of the program knows the version v2"},
		"a bad pattern":        {[]Version{badPattern, v2}, []*Step{step12}, `the pattern "(" of its schema`},
		"a long name":          {[]Version{v1, long}, nil, "is too long for the keys of annotations: take at most 46 characters"},
		"nothing":              {nil, nil, "has no versions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := NewKind(c.versions, c.steps)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// Versions that are not served belong to the tree. An object is converted along the path.
func TestPaths(t *testing.T) {
	t.Parallel()
	v3 := versionOf[cron3](t)
	if v3.Served || v3.Storage {
		t.Errorf("%+v", v3)
	}
	k, err := NewKind([]Version{versionOf[cron1](t), versionOf[cron2](t), v3}, []*Step{
		NewStep(func(*cron3, *cron2) {}, func(*cron2, *cron3) {}), NewStep(cronToV2, cronToV1),
	})
	if err != nil {
		t.Fatal(err)
	}
	h := cronObject("v1", `"schedule":"@daily","policy":"Forbid"`+cronTemplate)
	there := convertText(t, k, h, "v3")
	if back := convertText(t, k, string(there.Object), "v1"); string(back.Object) != canonical(t, h) {
		t.Errorf("there %s\nback %s", there.Object, back.Object)
	}
	if same := convertText(t, k, h, "v1"); string(same.Object) != canonical(t, h) {
		t.Errorf("the same version gives %s", same.Object)
	}
}

// What is no object of the kind is an error.
func TestObjectsOfOtherKinds(t *testing.T) {
	t.Parallel()
	k := cronKind(t)
	for text, isUnknown := range map[string]bool{
		``: false, `{`: false, `[]`: false, `{"kind":"CronJob"}`: false, `{"apiVersion":7,"kind":"CronJob"}`: false,
		`{"apiVersion":"batch.example.com/v9","kind":"CronJob"}`: true,
		`{"apiVersion":"batch.example.com/v1","kind":"Other"}`:   true,
		`{"apiVersion":"v1","kind":"CronJob"}`:                   true,
	} {
		if _, err := k.Convert([]byte(text), "v2"); err == nil || errors.Is(err, ErrUnknownVersion) != isUnknown {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := k.Convert([]byte(cronObject("v1", "")), "v9"); !errors.Is(err, ErrUnknownVersion) {
		t.Error(err)
	}
}
