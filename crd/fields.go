package crd

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// field is a field of a struct as JSON has it: embedded structs are already taken apart.
type field struct {
	reflect.StructField
	// name is the JSON name.
	name string
	// omitted is true when the encoder may leave the field out.
	omitted bool
	// quoted is true when the json tag has the option string.
	quoted bool
	// tag is the crd tag.
	tag string
	// depth counts the embedded structs around the field.
	depth int
	// in is the struct that declares the field.
	in owner
}

// owner is the struct around a field.
type owner struct {
	// name is the type's, or the field's of which it is the nameless type, for errors.
	name string
	// pkg and decl find its comments: the package, and the names from the type declared in
	// it down to this struct, as in WebAppSpec or WebAppSpec.Probe.
	pkg, decl string
}

// ownerOf is t as an owner of fields; at is where a t without a name stands.
func ownerOf(t reflect.Type, at place) owner {
	if t.Name() == "" {
		return owner{name: at.name, pkg: at.pkg, decl: at.decl}
	}
	return owner{name: t.String(), pkg: t.PkgPath(), decl: declared(t)}
}

// declared is the name under which t is declared: type arguments are left out.
func declared(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// fields are those of t that encoding/json reads and writes, in the order in which they
// are declared. Of two with one name the one that is less deeply embedded counts. What
// encoding/json would drop without a word is a problem here.
func (b *builder) fields(t reflect.Type, at place) []field {
	all := b.collect(t, ownerOf(t, at), 0, nil)
	var kept []field
	for i, f := range all {
		rivals := slices.DeleteFunc(slices.Clone(all), func(o field) bool { return o.name != f.name || o.depth > f.depth })
		switch {
		case slices.ContainsFunc(rivals, func(o field) bool { return o.depth < f.depth }):
		case len(rivals) > 1:
			other := rivals[0]
			if other.Name == f.Name && other.in == f.in {
				other = rivals[1]
			}
			b.failf(f.in.name+"."+f.Name, "the JSON name %q is taken by %s.%s as well", f.name, other.in.name, other.Name)
		default:
			kept = append(kept, all[i])
		}
	}
	return kept
}

func (b *builder) collect(t reflect.Type, in owner, depth int, open []reflect.Type) (all []field) {
	if slices.Contains(open, t) {
		b.failf(in.name, "the struct embeds itself")
		return nil
	}
	open = append(slices.Clone(open), t)
	for i := range t.NumField() {
		sf := t.Field(i)
		elem := sf.Type
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if !sf.IsExported() && (!sf.Anonymous || elem.Kind() != reflect.Struct) {
			continue
		}
		name := in.name + "." + sf.Name
		tag, err := lookup(sf.Tag, "json")
		if err != nil {
			b.failf(name, "%v", err)
			continue
		}
		if tag == "-" {
			continue
		}
		own, err := lookup(sf.Tag, "crd")
		if err != nil {
			b.failf(name, "%v", err)
			continue
		}
		options := strings.Split(tag, ",")
		f := field{StructField: sf, name: options[0], tag: own, depth: depth, in: in}
		f.omitted = slices.Contains(options[1:], "omitempty") || slices.Contains(options[1:], "omitzero")
		f.quoted = slices.Contains(options[1:], "string")
		switch {
		case f.name != "":
			all = append(all, f)
		case sf.Anonymous && elem.Kind() == reflect.Struct:
			if own != "" {
				b.failf(name, "the tag crd:%q has no place on an embedded struct, whose fields stand in the object around it; tag those", own)
			}
			if !sf.IsExported() && sf.Type.Kind() == reflect.Pointer {
				b.failf(name, "encoding/json cannot fill an embedded pointer to a struct that is not exported; embed the struct itself")
				continue
			}
			all = append(all, b.collect(elem, ownerOf(elem, place{name: name}), depth+1, open)...)
		case slices.Contains(options[1:], "inline"):
			b.failf(name, "encoding/json does not know the option inline; embed the field (write its type without a name)")
		default:
			b.failf(name, "the field has no JSON name; write `json:\"%s\"`, with omitempty or omitzero if it is optional, or `json:\"-\"` to leave it out", camel(sf.Name))
		}
	}
	return all
}

// camel is a Go name as Kubernetes writes it in JSON: Image becomes image, URLPath becomes
// urlPath.
func camel(name string) string {
	runes := []rune(name)
	for i := range runes {
		if !unicode.IsUpper(runes[i]) || i > 0 && i+1 < len(runes) && !unicode.IsUpper(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

// capital is a JSON name as the head of a column.
func capital(name string) string {
	r, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[size:]
}
