package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube/wire"
)

func streamOf(t *testing.T, selectors ...Selector) wire.Stream {
	t.Helper()
	streams, err := Everywhere[corev1.Pod](NewClientFromHandler(scripted(t))).Streams(selectors...)
	if err != nil {
		t.Fatal(err)
	}
	return streams[0]
}

// Bug: one selection that was written in two ways was two streams, with two watches and two
// stores.
func TestOneSelectionIsOneStream(t *testing.T) {
	t.Parallel()
	for _, same := range [][][]Selector{
		{
			{ParseLabels("a=1,b=2")}, {ParseLabels("b=2, a=1")}, {ParseLabels("a==1"), ParseLabels("b in (2)")},
			{Label("b", "2"), Label("a", "1"), Label("a", "1")}, {LabelIn("a", "1"), Label("b", "2"), Everything()},
		},
		{{ParseLabels("a in (2,1)")}, {ParseLabels("a in (1,2,1)")}, {LabelIn("a", "2", "1")}},
		{{ParseLabels("a!=1,!b,c")}, {ParseLabels("c,a notin (1)"), ParseLabels("!b")}, {LabelExists("c"), ParseLabels("!b,a!=1")}},
		{{ParseLabels("a>1")}, {ParseLabels("a > 1")}},
		{{ParseLabels("a=")}, {Label("a", "")}, {ParseLabels("a in ()")}},
		{{ParseFields("x=1,y!=2")}, {ParseFields("y!=2,x==1")}, {ParseFields("y!=2"), Field("x", "1")}},
		{{}, {ParseLabels("")}, {ParseFields("")}, {Everything()}},
	} {
		want := streamOf(t, same[0]...)
		for _, other := range same[1:] {
			if got := streamOf(t, other...); got != want {
				t.Errorf("%v is another stream than %v", got, want)
			}
		}
		// The canonical form says the same, and is its own canonical form.
		if got := streamOf(t, ParseLabels(want.LabelSelector), ParseFields(want.FieldSelector)); got != want {
			t.Errorf("%v became %v", want, got)
		}
	}
}

// Bug: a value that was put into an expression could add requirements to it.
func TestSelectorsTakeValuesAsTheyAre(t *testing.T) {
	t.Parallel()
	for name, selector := range map[string]Selector{
		"label value": Label("app", "a,tier=cache"), "label key": Label("app=a,tier", "cache"),
		"one of": LabelIn("app", "a", "b),(c"), "none of": LabelIn("app"),
		"exists": LabelExists("app,tier"), "field name": Field("a=b,c", "d"), "no field": Field("", "d"),
	} {
		if _, err := Everywhere[corev1.Pod](NewClientFromHandler(scripted(t))).Streams(selector); err == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
	// The values of fields are free text.
	got := streamOf(t, Field("reason", `a,b=c\d`)).FieldSelector
	if diff := cmp.Diff(`reason=a\,b\=c\\d`, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzSelectors checks that a canonical expression selects what the original one does.
func FuzzSelectors(f *testing.F) {
	f.Add("a=1,b in (x,y),!c", "x=1,y!=2")
	f.Add("a>5,a notin (),b", `x=\\,y=\=`)
	f.Fuzz(func(t *testing.T, labelExpression, fieldExpression string) {
		api := Everywhere[corev1.Pod](NewClientFromHandler(nil))
		first, err := api.Streams(ParseLabels(labelExpression), ParseFields(fieldExpression))
		if err != nil {
			return
		}
		again, err := api.Streams(ParseLabels(first[0].LabelSelector), ParseFields(first[0].FieldSelector))
		if err != nil || again[0] != first[0] {
			t.Errorf("%q and %q became %v, and that %v: %v", labelExpression, fieldExpression, first, again, err)
		}
	})
}
