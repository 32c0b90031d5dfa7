package admission_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

// checkLists returns an error for each value in the lists of a widget that begins with "bad".
func checkLists(_ context.Context, _, w *widget, _ *kube.Client) error {
	var all []error
	check := func(path *field.Path, value string) {
		if strings.HasPrefix(value, "bad") {
			all = append(all, field.Invalid(path, value, "it is not allowed any more"))
		}
	}
	spec := field.NewPath("spec")
	for i, each := range w.Spec.Args {
		check(spec.Child("args").Index(i), each)
	}
	for i, each := range w.Spec.Ports {
		check(spec.Child("ports").Index(i).Child("protocol"), each.Protocol)
	}
	for i, each := range w.Spec.Boxes {
		check(spec.Child("boxes").Index(i).Child("label"), each.Label)
		for j, tag := range each.Tags {
			check(spec.Child("boxes").Index(i).Child("tags").Index(j), tag)
		}
	}
	for key, each := range w.Spec.Content {
		check(spec.Child("content").Key(key), each)
	}
	return errors.Join(all...)
}

// Regression: an old error in a list was new when another element had been added before it, because its path has an index.
func TestRatchetingOfElements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, object string
		newErrors   int
	}{
		"a set or an atomic list: inserted after":  {`"args":["bad"]`, `"args":["bad","x"]`, 0},
		"inserted before":                          {`"args":["bad"]`, `"args":["x","bad"]`, 0},
		"removed before":                           {`"args":["x","bad"]`, `"args":["bad"]`, 0},
		"moved":                                    {`"args":["bad","x","bad 2"]`, `"args":["bad 2","bad","x"]`, 0},
		"doubled":                                  {`"args":["bad"]`, `"args":["bad","bad"]`, 1},
		"doubled before":                           {`"args":["bad","bad"]`, `"args":["bad","x","bad"]`, 0},
		"another bad one":                          {`"args":["bad"]`, `"args":["bad","bad 2"]`, 1},
		"changed beside":                           {`"args":["bad","x"]`, `"args":["bad","y"]`, 0},
		"a list map: inserted before":              {`"ports":[{"name":"a","protocol":"bad"}]`, `"ports":[{"name":"b"},{"name":"a","protocol":"bad"}]`, 0},
		"in a list map, changed beside":            {`"ports":[{"name":"a","protocol":"bad"}]`, `"ports":[{"name":"a","protocol":"bad","port":2}]`, 0},
		"in a list map, a key changed":             {`"ports":[{"name":"a","protocol":"bad"}]`, `"ports":[{"name":"b","protocol":"bad"}]`, 1},
		"in a list map, the value moved":           {`"ports":[{"name":"a","protocol":"bad"},{"name":"b"}]`, `"ports":[{"name":"a"},{"name":"b","protocol":"bad"}]`, 1},
		"in an atomic list, another element":       {`"boxes":[{"label":"bad"}]`, `"boxes":[{"width":1},{"label":"bad"}]`, 0},
		"in an atomic list, the element changed":   {`"boxes":[{"label":"bad"}]`, `"boxes":[{"label":"bad","width":1}]`, 1},
		"a list in a list: inserted before":        {`"boxes":[{"tags":["bad"]}]`, `"boxes":[{"width":1},{"tags":["bad"]}]`, 0},
		"a list in a list: the inner list changed": {`"boxes":[{"tags":["bad"]}]`, `"boxes":[{"tags":["x","bad"]}]`, 1},
		"a list in a list, both bad":               {`"boxes":[{"label":"bad","tags":["bad"]}]`, `"boxes":[{},{"label":"bad","tags":["bad"]}]`, 0},
		"a map has keys":                           {`"content":{"0":"bad"}`, `"content":{"0":"bad","1":"x"}`, 0},
		"another key of a map":                     {`"content":{"0":"bad"}`, `"content":{"1":"bad"}`, 1},
	} {
		h, _ := newHandler(t, admission.Options{IsStrict: true}, admission.Validator(checkLists, admission.ValidatorOptions{}))
		a := answerOf(t, h, validatePath, review("UPDATE", `{"spec":{`+c.object+`}}`, `{"spec":{`+c.old+`}}`))
		causes := 0
		if a.Status.Details != nil {
			causes = len(a.Status.Details.Causes)
		}
		if a.Allowed != (c.newErrors == 0) || causes != c.newErrors {
			t.Errorf("%s: %d new errors, want %d: %+v", name, causes, c.newErrors, a)
		}
	}
}

// A path that names no element of the object, as of a validator that judges the words of a text, has no index.
func TestRatchetingOfPathsWithoutElements(t *testing.T) {
	t.Parallel()
	check := func(_ context.Context, _, w *widget, _ *kube.Client) error {
		var all []error
		for i, word := range strings.Fields(w.Spec.Schedule) {
			if strings.HasPrefix(word, "bad") {
				all = append(all, field.Invalid(field.NewPath("spec", "args").Index(i), word, "it is not allowed any more"))
			}
		}
		return errors.Join(all...)
	}
	for object, isAllowed := range map[string]bool{"bad x": true, "x bad": true, "bad bad": false, "bad bad2": false} {
		h, _ := newHandler(t, admission.Options{}, admission.Validator(check, admission.ValidatorOptions{}))
		if a := answerOf(t, h, validatePath, review("UPDATE", `{"spec":{"schedule":"`+object+`"}}`, `{"spec":{"schedule":"bad"}}`)); a.Allowed != isAllowed {
			t.Errorf("%s: allowed is %t: %+v", object, a.Allowed, a.Status)
		}
	}
}
