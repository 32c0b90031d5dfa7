package kube

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DeepCopy returns a copy of t. The copy and t share only what never changes. With it an author makes a
// type a runtime.Object in one line:
//
//	func (w *WebApp) DeepCopyObject() runtime.Object { return kube.DeepCopy(w) }
//
// DeepCopy copies by reflection, and needs no generated methods. A struct within t with a method
// DeepCopyInto, as the code generators of Kubernetes write it, is copied by this method. Any other struct
// with unexported pointers, slices, maps or interfaces is copied by its methods for JSON or text: the copy
// has only what the JSON has. DeepCopy panics for a struct with unexported references and without these
// methods. It also panics for channels and functions, which no object has. t must not contain itself. The
// copy of nil is nil.
func DeepCopy[T any](t *T) *T {
	if t == nil {
		return nil
	}
	c := new(T)
	*c = *t
	// The method of t itself may call DeepCopy.
	if v := reflect.ValueOf(c).Elem(); v.Kind() == reflect.Struct {
		unshareStruct(v)
	} else {
		unshare(v)
	}
	return c
}

// unshare replaces everything that v refers to by a copy. v can be set.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c := reflect.New(v.Type().Elem())
			c.Elem().Set(v.Elem())
			unshare(c.Elem())
			v.Set(c)
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(unshared(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			unshareElements(c)
			v.Set(c)
		}
	case reflect.Array:
		unshareElements(v)
	case reflect.Map:
		if !v.IsNil() {
			c := reflect.MakeMapWithSize(v.Type(), v.Len())
			for entries := v.MapRange(); entries.Next(); {
				c.SetMapIndex(entries.Key(), unshared(entries.Value()))
			}
			v.Set(c)
		}
	case reflect.Struct:
		if !copyByMethod(v) {
			unshareStruct(v)
		}
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		panic(fmt.Sprintf("kube.DeepCopy: a %s cannot be copied", v.Type()))
	}
}

// unshared returns a copy of v that shares nothing with v. v cannot be set.
func unshared(v reflect.Value) reflect.Value {
	if !hasReferences(v.Type()) {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	unshare(c)
	return c
}

func unshareElements(v reflect.Value) {
	if !hasReferences(v.Type().Elem()) {
		return
	}
	for i := range v.Len() {
		unshare(v.Index(i))
	}
}

func unshareStruct(v reflect.Value) {
	if q, ok := v.Addr().Interface().(*resource.Quantity); ok {
		*q = q.DeepCopy()
		return
	}
	t := v.Type()
	if isImmutable(t) || copyByJSON(v) {
		return
	}
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case !hasReferences(f.Type):
		case !f.IsExported():
			panic(fmt.Sprintf("kube.DeepCopy: %s has the unexported field %s, which cannot be copied from outside: give %s the methods MarshalJSON and UnmarshalJSON",
				t, f.Name, t))
		default:
			unshare(v.Field(i))
		}
	}
}

// copyByMethod copies the struct v by the method DeepCopyInto, and reports whether v has the method.
func copyByMethod(v reflect.Value) bool {
	if !hasReferences(v.Type()) {
		return false
	}
	// The name is a constant, so that the linker keeps no method of another name.
	m := v.Addr().MethodByName("DeepCopyInto")
	if !m.IsValid() {
		return false
	}
	if t := m.Type(); t.NumIn() != 1 || t.NumOut() != 0 || t.In(0) != v.Addr().Type() {
		return false // such as the method of an embedded struct
	}
	c := reflect.New(v.Type())
	m.Call([]reflect.Value{c})
	v.Set(c.Elem())
	return true
}

// copyByJSON copies v by its own JSON methods, and reports whether it has any. Types without
// unexported references are copied without them.
func copyByJSON(v reflect.Value) bool {
	if !hidesReferences(v.Type()) || !roundTrips(v.Addr().Interface()) {
		return false
	}
	c := reflect.New(v.Type())
	data, err := Marshal(v.Addr().Interface())
	if err == nil {
		err = Unmarshal(data, c.Interface())
	}
	if err != nil {
		panic(fmt.Sprintf("kube.DeepCopy: copy a %s by its JSON: %v", v.Type(), err))
	}
	v.Set(c.Elem())
	return true
}

// roundTrips reports whether the type of p encodes and decodes itself as JSON or text.
func roundTrips(p any) bool {
	switch p.(type) {
	case json.Marshaler, jsonv2.MarshalerTo, encoding.TextMarshaler:
	default:
		return false
	}
	switch p.(type) {
	case json.Unmarshaler, jsonv2.UnmarshalerFrom, encoding.TextUnmarshaler:
		return true
	}
	return false
}

// hidesReferences reports whether the struct t has an unexported field that refers to memory.
func hidesReferences(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); !f.IsExported() && hasReferences(f.Type) {
			return true
		}
	}
	return false
}

// isImmutable reports whether values of t share only what never changes.
func isImmutable(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t.PkgPath() == "unique"
}

// hasReferences reports whether values of t refer to memory that can be shared.
func hasReferences(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return hasReferences(t.Elem())
	case reflect.Struct:
		if isImmutable(t) {
			return false
		}
		for i := range t.NumField() {
			if hasReferences(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
