package crd

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// field is a field of a JSON object. The fields of embedded structs are fields of their own.
type field struct {
	reflect.StructField
	// name is the JSON name.
	name string
	// mayBeOmitted is true if the encoder may leave the field out, because of its own tag or
	// because an embedded pointer around it is nil.
	mayBeOmitted bool
	// isQuoted is true if the json tag has the option string.
	isQuoted bool
	// tag is the crd tag.
	tag string
	// depth counts the embedded structs around the field.
	depth int
	// owner is the struct that declares the field.
	owner owner
}

// owner is the struct around a field.
type owner struct {
	// name is the name of the type or, for a type without a name, of the field. Errors show it.
	name string
	// pkg and decl locate the comments: the package, and the names from the declared type to
	// this struct, as in WebAppSpec or WebAppSpec.Probe.
	pkg, decl string
}

// ownerOf returns t as an owner of fields. A t without a name is identified by its position.
func ownerOf(t reflect.Type, at position) owner {
	if t.Name() == "" {
		return owner{name: at.goName, pkg: at.pkg, decl: at.decl}
	}
	return owner{name: t.String(), pkg: t.PkgPath(), decl: declaredName(t)}
}

// declaredName returns the name of the declaration of t, without type arguments.
func declaredName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// fieldCollector collects the fields of structs as encoding/json sees them.
type fieldCollector struct {
	// sources may be nil.
	sources  *sources
	problems *problems
}

// fieldsOf returns the fields of t that encoding/json reads and writes, in the order of their
// declaration. If two fields have one name, the less deeply embedded field counts. A field that
// encoding/json would silently drop is a problem.
func (c fieldCollector) fieldsOf(t reflect.Type, at position) []field {
	all := c.collect(nil, t, ownerOf(t, at), 0, false, nil)
	// shallowest holds the indexes of the fields that are called alike at the least depth.
	shallowest := make(map[string][]int, len(all))
	for i, f := range all {
		switch others := shallowest[f.name]; {
		case others == nil || f.depth < all[others[0]].depth:
			shallowest[f.name] = []int{i}
		case f.depth == all[others[0]].depth:
			shallowest[f.name] = append(others, i)
		}
	}
	kept := make([]field, 0, len(shallowest))
	for i, f := range all {
		switch sameName := shallowest[f.name]; {
		case !slices.Contains(sameName, i): // the encoder does not see it
		case len(sameName) == 1:
			kept = append(kept, f)
		default:
			other := sameName[0]
			if other == i {
				other = sameName[1]
			}
			c.problems.addf(f.owner.name+"."+f.Name, "the JSON name %q is taken by %s.%s as well",
				f.name, all[other].owner.name, all[other].Name)
		}
	}
	return kept
}

// collect appends the fields of t, and the fields of the structs that t embeds, to all. The
// struct outer declares the fields of t at this depth of embedding. mayBeOmitted is true if an embedded
// pointer leads to t. ancestors holds the structs around t.
func (c fieldCollector) collect(
	all []field, t reflect.Type, outer owner, depth int, mayBeOmitted bool, ancestors []reflect.Type,
) []field {
	if slices.Contains(ancestors, t) {
		c.problems.addf(outer.name, "the struct embeds itself")
		return all
	}
	ancestors = append(slices.Clone(ancestors), t)
	c.sources.commentsOf(t) // so that problems have positions, and fields have comments
	all = slices.Grow(all, t.NumField())
	for sf := range t.Fields() {
		elem := sf.Type
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if !sf.IsExported() && (!sf.Anonymous || elem.Kind() != reflect.Struct) {
			continue
		}
		name := outer.name + "." + sf.Name
		tag, err := lookupStructTag(sf.Tag, "json")
		if err != nil {
			c.problems.addf(name, "%v", err)
			continue
		}
		if tag == "-" {
			continue
		}
		own, err := lookupStructTag(sf.Tag, "crd")
		if err != nil {
			c.problems.addf(name, "%v", err)
			continue
		}
		options := strings.Split(tag, ",")
		f := field{StructField: sf, name: options[0], tag: own, depth: depth, owner: outer}
		f.mayBeOmitted = mayBeOmitted || slices.Contains(options[1:], "omitempty") || slices.Contains(options[1:], "omitzero")
		f.isQuoted = slices.Contains(options[1:], "string")
		switch {
		case f.name != "":
			all = append(all, f)
		case sf.Anonymous && elem.Kind() == reflect.Struct:
			if own != "" {
				c.problems.addf(name, "the tag crd:%q has no meaning on an embedded struct, whose fields belong to the object around it; tag these fields", own)
			}
			if !sf.IsExported() && sf.Type.Kind() == reflect.Pointer {
				c.problems.addf(name,
					"encoding/json cannot fill an embedded pointer to a struct that is not exported; embed the struct itself")
				continue
			}
			viaPointer := mayBeOmitted || sf.Type.Kind() == reflect.Pointer
			all = c.collect(all, elem, ownerOf(elem, position{goName: name}), depth+1, viaPointer, ancestors)
		case slices.Contains(options[1:], "inline"):
			c.problems.addf(name,
				"encoding/json does not know the option inline; embed the field (write its type without a name)")
		default:
			c.problems.addf(name, "the field has no JSON name; write `json:\"%s\"`, with omitempty or omitzero if it is optional, or `json:\"-\"` to leave it out", camel(sf.Name))
		}
	}
	return all
}

// camel returns a Go name as Kubernetes writes it in JSON: image for Image, urlPath for
// URLPath.
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

// capital returns a JSON name as the head of a column.
func capital(name string) string {
	r, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[size:]
}
