package fakeserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// patched returns content after the JSON patch of r. Every failure is a 422 without details,
// as a real server answers.
func patched(r *wire.Request, content map[string]any) (map[string]any, error) {
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(r.Body, &operations); err != nil {
		return nil, badRequest(r, err.Error())
	}
	var root any = content
	for _, o := range operations {
		var steps []string
		for step := range strings.SplitSeq(strings.TrimPrefix(o.Path, "/"), "/") {
			steps = append(steps, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
		var err error
		if root, err = operate(root, steps, o.Op, o.Value); err != nil {
			e := refusalOf(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, fmt.Sprintf("the server rejected our request due to an error in our request: %s %s: %v", o.Op, o.Path, err))
			e.Answer.Details = &metav1.StatusDetails{}
			return nil, e
		}
	}
	return root.(map[string]any), nil
}

// operate returns node after one operation of a JSON patch below it.
func operate(node any, steps []string, op string, value any) (any, error) {
	name, rest := steps[0], steps[1:]
	switch node := node.(type) {
	case map[string]any:
		child, has := node[name]
		switch {
		case len(rest) > 0:
			if !has {
				return nil, errors.New("the path does not exist")
			}
			child, err := operate(child, rest, op, value)
			node[name] = child
			return node, err
		case op == "test":
			if !reflect.DeepEqual(child, value) {
				return nil, errors.New("the test failed")
			}
		case op == "add":
			node[name] = value
		case !has:
			return nil, errors.New("the path does not exist")
		case op == "remove":
			delete(node, name)
		default:
			node[name] = value
		}
		return node, nil
	case []any:
		i, err := strconv.Atoi(name)
		if name == "-" {
			i, err = len(node), nil
		}
		if err != nil || i < 0 || i > len(node) || i == len(node) && (op != "add" || len(rest) > 0) {
			return nil, errors.New("the index does not exist")
		}
		switch {
		case len(rest) > 0:
			child, err := operate(node[i], rest, op, value)
			node[i] = child
			return node, err
		case op == "test":
			if !reflect.DeepEqual(node[i], value) {
				return nil, errors.New("the test failed")
			}
		case op == "add":
			return slices.Insert(node, i, value), nil
		case op == "remove":
			return slices.Delete(node, i, i+1), nil
		default:
			node[i] = value
		}
		return node, nil
	}
	return nil, errors.New("the path does not exist")
}

// mergePatch returns live after a JSON merge patch.
func mergePatch(live, body any) any {
	b, ok := body.(map[string]any)
	if !ok {
		return body
	}
	l, ok := live.(map[string]any)
	if !ok {
		l = map[string]any{}
	}
	for k, v := range b {
		if v == nil {
			delete(l, k)
		} else {
			l[k] = mergePatch(l[k], v)
		}
	}
	return l
}
