package jsonplan

import (
	"reflect"
	"testing"
)

type node struct {
	Name string   `json:"name"`
	Args []string `json:"args"`
	Next *node    `json:"next"`
}

// The plan of a type that contains itself refers to itself, and is made once.
func TestPlannerPlansATypeThatContainsItself(t *testing.T) {
	t.Parallel()
	var plans planner
	p := plans.plan(reflect.TypeFor[node]())
	if p.kind != kindStruct || len(p.fields) != 3 {
		t.Fatalf("the plan is of kind %d with %d fields", p.kind, len(p.fields))
	}
	if i := p.find([]byte("args")); i != 1 || p.fields[i].plan.kind != kindStrings {
		t.Errorf("args is the field %d", i)
	}
	if i := p.find([]byte("next")); i != 2 || p.fields[i].plan.kind != kindPointer || p.fields[i].plan.elem != p {
		t.Errorf("next is the field %d", i)
	}
	if p.find([]byte("Name")) != -1 || plans.plan(reflect.TypeFor[node]()) != p {
		t.Error("the case of a name does not count, or a type has two plans")
	}
}
