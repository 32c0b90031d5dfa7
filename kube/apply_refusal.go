package kube

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// unsetStructs finds the structs of an object that were not set. table has the rules of its types.
type unsetStructs struct{ table *pruneRuleTable }

// addTo returns err, the error of an apply of obj. If the server has refused the apply because of a struct that
// was not set, the result names that struct and what helps. For example, the schema of a foreign kind requires
// spec.endpoint, and obj has the zero value there. Then the server misses the member, because the apply did not send
// it.
func (u unsetStructs) addTo(obj Object, err error) error {
	e, ok := AsError(err)
	if !ok || !IsInvalid(err) || e.Answer.Details == nil {
		return err
	}
	var notes []string
	for _, cause := range e.Answer.Details.Causes {
		path, isSent := u.find(obj, cause.Field)
		note := ""
		switch {
		case path == "":
		case !isSent && cause.Type == metav1.CauseTypeFieldValueRequired:
			note = path + " was not sent, because it is the zero value of a Go struct: set a field in it, if only to an empty map or list that is not nil, or apply a type with a pointer there, or an unstructured.Unstructured"
		case isSent && path != cause.Field && path != "spec":
			note = path + " was sent, because the schema requires it, although it is the zero value of a Go struct: tag the field omitzero, so that it may be missing"
		}
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	if notes == nil {
		return err
	}
	return fmt.Errorf("%w; %s", err, strings.Join(notes, "; "))
}

// undeclaredField matches a field that the schema of an API server lacks, in the answer to an apply. In "failed to create
// typed patch object (n/web; apps/v1, Kind=Deployment): .spec.colour: field not declared in schema" it is spec.colour.
var undeclaredField = regexp.MustCompile(`\): \.([^\n]+): field not declared in schema`)

// addUndeclaredField returns err, the error of an apply of r. If the server has refused the apply because it does not
// know a field, the result names the field and what helps. The server names the first such field.
func addUndeclaredField(r wire.Resource, err error) error {
	e, ok := AsError(err)
	if !ok || e.Code != http.StatusInternalServerError {
		return err
	}
	field := undeclaredField.FindStringSubmatch(e.Answer.Message)
	if field == nil {
		return err
	}
	return fmt.Errorf("%w; the API server knows no field %s in %s: the name is wrong, or the server or its definition of the kind is "+
		"older than the applied type: leave the field empty for such a server, or upgrade it", err, field[1], r)
}

// fieldStep matches a step of the path of a field in a cause, as in spec.ports[0].name.
var fieldStep = regexp.MustCompile(`\[[^\]]*\]|[^.\[]+`)

// find returns the path of the struct of obj that is the zero value of its type, and that is the field or has the
// field in it. Of several, it is the outermost one that is not sent, or else the innermost one. path is empty if there
// is none. isSent is true if an apply sends the struct anyway.
func (u unsetStructs) find(obj Object, field string) (path string, isSent bool) {
	return u.findWithin(u.table.rulesOfObject(obj), reflect.ValueOf(obj).Elem(), fieldStep.FindAllString(field, -1), "")
}

// findWithin returns what find returns for the value v at prefix, from which steps lead to the field.
func (u unsetStructs) findWithin(
	rules *pruneRules, v reflect.Value, steps []string, prefix string,
) (path string, isSent bool) {
	if rules, v = u.table.indirect(rules, v); len(steps) == 0 || rules.isVerbatim() {
		return "", false
	}
	key, isElement := strings.CutPrefix(steps[0], "[")
	key = strings.TrimSuffix(key, "]")
	switch {
	case !isElement:
		m := rules.members[key]
		value := m.fieldOf(v)
		path = strings.TrimPrefix(prefix+"."+key, ".")
		if value.Kind() == reflect.Struct && value.IsZero() {
			if !m.dropZero {
				// A struct within it may be closer to the field.
				if within, isWithinSent := u.findWithin(m.rules, value, steps[1:], path); within != "" {
					return within, isWithinSent
				}
			}
			return path, !m.dropZero
		}
		return u.findWithin(m.rules, value, steps[1:], path)
	case v.Kind() == reflect.Map:
		return u.findWithin(rules.elem, elementOf(v, key), steps[1:], prefix+steps[0])
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		// The server counts the elements of all managers, so its index may be of another element.
		for i := range v.Len() {
			path, isSent = u.findWithin(rules.elem, v.Index(i), steps[1:], fmt.Sprintf("%s[%d]", prefix, i))
			if path != "" {
				return path, isSent
			}
		}
	}
	return "", false
}
