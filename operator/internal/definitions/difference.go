package definitions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yare-go/yare/kube"
)

// Difference is a value that two definitions of a kind do not have in common.
type Difference struct {
	// Path says where the value is, such as "v1 .spec.ports[*].port maximum" or "names.shortNames".
	Path string
	// Ours and Theirs are the values as text. They are empty where there is none.
	Ours, Theirs string
	// Note says why controller-gen has another value. It is empty if that is not known.
	Note string
}

// Differences returns what differs between two definitions, which are decoded JSON, in the order of their paths.
// These are no differences: the order of keys and of lists whose order has no meaning, a default that servers fill
// in, the status, the conversion, which a program publishes when it runs, labels and annotations of tools, and
// descriptions, unless withDescriptions is true. A bound of an allOf counts like one beside it, as controller-gen
// writes the markers of a type and of its field.
func Differences(ours, theirs map[string]any, withDescriptions bool) []Difference {
	d := differ{simplifier: simplifier{withDescriptions}}
	ourSpec, ourVersions := d.withoutVersions(ours)
	theirSpec, theirVersions := d.withoutVersions(theirs)
	for _, field := range []string{"labels", "annotations"} {
		d.compare("metadata."+field, ownKeys(ours, field), ownKeys(theirs, field))
	}
	d.compare("", ourSpec, theirSpec)
	for _, name := range unionOfKeys(ourVersions, theirVersions) {
		a, b := ourVersions[name], theirVersions[name]
		if a == nil || b == nil {
			d.add(name, presence(a != nil, "the version"), presence(b != nil, "the version"), "")
			continue
		}
		d.compare(name, d.version(a), d.version(b))
		d.compareSchemas(name+" ", schemaOf(a), schemaOf(b))
	}
	return d.all
}

// differ collects differences.
type differ struct {
	simplifier
	all []Difference
}

func (d *differ) add(path, ours, theirs, note string) {
	d.all = append(d.all, Difference{strings.Replace(path, "  ", " ", 1), ours, theirs, note})
}

// withoutVersions returns the spec of a definition without its versions and its conversion, and the versions by name.
func (d *differ) withoutVersions(definition map[string]any) (spec, versions map[string]any) {
	spec, _ = definition["spec"].(map[string]any)
	spec = maps.Clone(spec)
	versions = byKey(spec["versions"], "name")
	for _, name := range []string{"versions", "conversion", "preserveUnknownFields"} {
		delete(spec, name)
	}
	if names, ok := spec["names"].(map[string]any); ok {
		names = maps.Clone(names)
		kind, _ := names["kind"].(string)
		for name, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
			if names[name] == value {
				delete(names, name)
			}
		}
		for _, name := range []string{"shortNames", "categories"} {
			names[name] = sorted(names[name])
		}
		spec["names"] = names
	}
	return spec, versions
}

// version returns a version without its schema. Its columns and selectable fields are by their names.
func (d *differ) version(v any) map[string]any {
	version, _ := v.(map[string]any)
	version = maps.Clone(version)
	delete(version, "schema")
	delete(version, "name")
	columns := byKey(version["additionalPrinterColumns"], "name")
	for name, each := range columns {
		if column, ok := each.(map[string]any); ok {
			column = maps.Clone(column)
			delete(column, "name")
			if priority, _ := numberOf(column["priority"]); priority > 0 {
				column["priority"] = int64(1) // kubectl asks only whether it is above 0
			}
			if !d.withDescriptions {
				delete(column, "description")
			}
			columns[name] = column
		}
	}
	if age, ok := columns["Age"].(map[string]any); ok && age["jsonPath"] == ".metadata.creationTimestamp" {
		delete(columns, "Age") // a server adds it to a version without columns
	}
	version["additionalPrinterColumns"] = columns
	version["selectableFields"] = byKey(version["selectableFields"], "jsonPath")
	return version
}

// schemaOf returns the schema of a version, without the fields that servers know.
func schemaOf(v any) schema {
	version, _ := v.(map[string]any)
	outer, _ := version["schema"].(map[string]any)
	root, _ := outer["openAPIV3Schema"].(schema)
	if root == nil {
		return nil
	}
	root = maps.Clone(root)
	if properties, ok := root["properties"].(schema); ok {
		properties = maps.Clone(properties)
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(properties, name)
		}
		root["properties"] = properties
	}
	required, _ := root["required"].([]any)
	root["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool { return name == "metadata" })
	return root
}

// compare compares values outside of schemas. Missing, false, zero and empty values are equal.
func (d *differ) compare(path string, ours, theirs any) {
	a, isOurs := ours.(map[string]any)
	b, areTheirs := theirs.(map[string]any)
	isPresence := strings.HasSuffix(path, "subresources.status") // it is an empty object
	switch {
	case (isOurs || isEmpty(ours)) && (areTheirs || isEmpty(theirs)) && len(a)+len(b) > 0 && !isPresence:
		for _, name := range unionOfKeys(a, b) {
			d.compare(strings.TrimPrefix(path+"."+name, "."), a[name], b[name])
		}
	case isEmpty(ours) && isEmpty(theirs) && !isPresence, isEqual(ours, theirs):
	default:
		d.add(path, text(ours), text(theirs), "")
	}
}

// compareSchemas compares the schemas of the value at a path.
func (d *differ) compareSchemas(path string, ours, theirs schema) {
	a, b := d.simplify(ours), d.simplify(theirs)
	for _, keyword := range unionOfKeys(a, b) {
		x, y := a[keyword], b[keyword]
		switch inOurs, inTheirs := asSchema(x), asSchema(y); {
		case keyword == "properties" && len(inOurs)*len(inTheirs) > 0:
			for _, name := range unionOfKeys(inOurs, inTheirs) {
				d.compareMembers(path+"."+name, inOurs[name], inTheirs[name])
			}
		case keyword == "properties":
			ourNames, theirNames := strings.Join(unionOfKeys(inOurs), ", "), strings.Join(unionOfKeys(inTheirs), ", ")
			d.add(path+" fields", ourNames, theirNames, noteOf(path, keyword, a, b))
		case keyword == "items" || keyword == "additionalProperties":
			d.compareMembers(path+"[*]", x, y)
		case keyword == "x-kubernetes-validations":
			for _, rule := range unionOfKeys(inOurs, inTheirs) {
				if !isEqual(inOurs[rule], inTheirs[rule]) {
					d.add(path+" rule "+quoted(rule), text(inOurs[rule]), text(inTheirs[rule]), "")
				}
			}
		case !isEqual(x, y):
			d.add(path+" "+keyword, text(x), text(y), noteOf(path, keyword, a, b))
		}
	}
}

// compareMembers compares what the schemas of two objects, lists or maps have for one member.
func (d *differ) compareMembers(path string, ours, theirs any) {
	a, isOurs := ours.(schema)
	b, areTheirs := theirs.(schema)
	switch {
	case isOurs && areTheirs:
		d.compareSchemas(path, a, b)
		return
	case isEqual(ours, theirs):
		return
	}
	describe := func(s schema, isSchema bool, v any) string {
		if isSchema {
			return "a field of the type " + typeOf(s)
		}
		return text(v)
	}
	d.add(path, describe(a, isOurs, ours), describe(b, areTheirs, theirs), "")
}

// noteOf returns why controller-gen has another value of a keyword in the schema theirs than yare has in ours.
func noteOf(path, keyword string, ours, theirs schema) string {
	minimum, _ := numberOf(ours["minimum"])
	maximum, _ := numberOf(ours["maximum"])
	has := func(low, top float64) bool { return minimum == low && maximum == top }
	pattern, _ := ours["pattern"].(string)
	switch {
	case keyword == "format" && theirs["format"] == "int32" && maximum == 1<<32-1:
		return "controller-gen gives a uint32 the format of an int32, so that servers refuse values from 2147483648 on"
	case ours["x-kubernetes-int-or-string"] == true && has(-1<<31, 1<<31-1) && theirs[keyword] == nil:
		return "controller-gen leaves out that the Go type has an int32"
	case slices.Contains([]string{"format", "minimum", "maximum"}, keyword) && theirs[keyword] == nil &&
		(has(0, 1<<32-1) || has(0, 1<<16-1) || has(0, 1<<8-1) || has(-1<<15, 1<<15-1) || has(-1<<7, 1<<7-1)):
		return "controller-gen leaves out the range of the Go type"
	case keyword == "format" && ours["format"] == "int64" && theirs["format"] == nil:
		return "controller-gen leaves out the range of an int"
	case keyword == "minimum" && ours[keyword] != nil && minimum == 0 && ours["format"] == "int64" && theirs[keyword] == nil:
		return "controller-gen leaves out the range of an unsigned Go type"
	case keyword == "pattern" && (strings.Contains(pattern, "numkMGTPE") || strings.Contains(pattern, "µs") ||
		strings.Contains(pattern, "[0-9]{6}(Z")):
		return "with the pattern of controller-gen, servers accept values that the Go type cannot read"
	case keyword == "properties" && len(asSchema(theirs[keyword])) == 0 && strings.HasSuffix(path, ".metadata"):
		return "controller-gen has them only with generateEmbeddedObjectMeta=true, and servers drop them without"
	}
	return ""
}

// ownKeys returns the labels or annotations of a definition that do not belong to tools.
func ownKeys(definition map[string]any, field string) map[string]any {
	metadata, _ := definition["metadata"].(map[string]any)
	all, _ := metadata[field].(map[string]any)
	own := maps.Clone(all)
	maps.DeleteFunc(own, func(key string, _ any) bool {
		prefix, _, _ := strings.Cut(key, "/")
		return slices.Contains(strings.Fields("app.kubernetes.io api-approved.kubernetes.io cert-manager.io "+
			"controller-gen.kubebuilder.io kubectl.kubernetes.io meta.helm.sh"), prefix)
	})
	return own
}

// byKey returns the objects of a list by the text of one of their members.
func byKey(list any, key string) map[string]any {
	items, _ := list.([]any)
	all := make(map[string]any, len(items))
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			all[fmt.Sprint(object[key])] = object
		}
	}
	return all
}

// unionOfKeys returns the keys of all maps, sorted.
func unionOfKeys(all ...map[string]any) []string {
	union := make(map[string]any)
	for _, each := range all {
		maps.Copy(union, each)
	}
	return slices.Sorted(maps.Keys(union))
}

// presence returns what if it is there, and otherwise an empty text.
func presence(isThere bool, what string) string {
	if isThere {
		return what
	}
	return ""
}

// text returns a value as JSON, which is cut after 200 bytes. It is empty for nil.
func text(value any) string {
	if value == nil {
		return ""
	}
	encoded, err := kube.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(encoded) > 200 {
		return strings.ToValidUTF8(string(encoded[:200]), "") + "…"
	}
	return string(encoded)
}

// quoted returns a rule in one line.
func quoted(rule string) string { return "'" + strings.Join(strings.Fields(rule), " ") + "'" }
