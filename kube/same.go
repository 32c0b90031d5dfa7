package kube

import utiljson "k8s.io/apimachinery/pkg/util/json"

// isSameObject reports whether two encodings are equal, apart from the fields that the server sets
// in an object that it stores. A null equals a missing member. In doubt it reports
// false: {} and a missing member differ in a label selector.
func isSameObject(live, wanted []byte) bool {
	var l, w map[string]any
	// Not Unmarshal: in a float64, two large integers can be the same.
	if utiljson.Unmarshal(live, &l) != nil || utiljson.Unmarshal(wanted, &w) != nil {
		return false
	}
	for _, o := range []map[string]any{l, w} {
		if metadata, ok := o["metadata"].(map[string]any); ok {
			for _, own := range []string{"resourceVersion", "generation", "managedFields", "creationTimestamp"} {
				delete(metadata, own)
			}
		}
		if status, ok := o["status"].(map[string]any); ok && len(status) == 0 {
			delete(o, "status") // a Go struct that was never set encodes as {}
		}
	}
	return isSameValue(l, w)
}

func isSameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range a {
			if !isSameValue(v, b[k]) {
				return false
			}
		}
		for k, v := range b {
			if _, known := a[k]; !known && v != nil {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !isSameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}
