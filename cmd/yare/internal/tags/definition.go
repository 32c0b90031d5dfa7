package tags

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// embeds reports whether a type is a struct that embeds types of these names. A kind embeds TypeMeta and ObjectMeta.
func embeds(t *ast.TypeSpec, names ...string) bool {
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return false
	}
	found := 0
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 && slices.Contains(names, typeName(field.Type)) {
			found++
		}
	}
	return found == len(names)
}

// definition collects what the markers of a kind say.
type definition struct {
	// fields are those of a literal of kube.Definition, as Go.
	fields               map[string]string
	names                []string
	columns              []string
	selectable           []string
	labels, annotations  []string
	rules                []directive
	hasStatus, isSkipped bool
}

// set sets a field of the literal.
func (d *definition) set(name, value string) {
	if d.fields[name] == "" {
		d.names = append(d.names, name)
	}
	d.fields[name] = value
}

// add adds what a marker says. It returns what has no counterpart, and reports whether it knows the marker.
func (d *definition) add(m marker, kind string) (lost string, ok bool) {
	const prefix = "kubebuilder:"
	if args, ok := m.args(prefix + "resource"); ok {
		for key, field := range map[string]string{"shortName": "ShortNames", "categories": "Categories"} {
			if args[key] != "" {
				d.set(field, fmt.Sprintf("%#v", listOf(args[key])))
			}
		}
		if args["path"] != "" {
			d.set("Plural", strconv.Quote(args["path"]))
		}
		if args["scope"] == "Cluster" {
			d.set("ClusterScoped", "true")
		}
		if singular := args["singular"]; singular != "" && singular != strings.ToLower(kind) {
			return "yare's singular is " + strings.ToLower(kind), true
		}
		return "", true
	}
	if args, ok := m.args(prefix + "printcolumn"); ok {
		column := fmt.Sprintf("{Name: %s, Type: %q, JSONPath: %s",
			goString(args["name"]), args["type"], goString(args["JSONPath"]))
		if args["description"] != "" {
			column += ", Description: " + goString(args["description"])
		}
		if priority := args["priority"]; priority != "" && priority != "0" {
			column += ", Wide: true"
		}
		d.columns = append(d.columns, column+"},")
		if args["format"] != "" {
			return "a column has no format", true
		}
		return "", true
	}
	if args, ok := m.args(prefix + "subresource:scale"); ok {
		d.set("Scale", fmt.Sprintf("&kube.ScalePaths{SpecReplicas: %q, StatusReplicas: %q, Selector: %q}",
			args["specpath"], args["statuspath"], args["selectorpath"]))
		return "", true
	}
	if args, ok := m.args(prefix + "deprecatedversion"); ok {
		warning := args["warning"]
		if warning == "" {
			warning = kind + " is deprecated in this version"
		}
		d.set("Deprecated", goString(warning))
		return "", true
	}
	if args, ok := m.args(prefix + "selectablefield"); ok {
		d.selectable = append(d.selectable, fmt.Sprintf("%q: \"selectable\",", args["JSONPath"]))
		return "", true
	}
	if args, ok := m.args(prefix + "metadata"); ok {
		d.labels = append(d.labels, pairs(args["labels"])...)
		d.annotations = append(d.annotations, pairs(args["annotations"])...)
		return "", true
	}
	if args, ok := m.args(validation + "XValidation"); ok {
		directives, _, reason := ruleOf(args)
		d.rules = append(d.rules, directives...)
		return reason, true
	}
	switch m.name {
	case prefix + "subresource:status":
		d.hasStatus = true
	case prefix + "storageversion":
		d.set("Storage", "true")
	case prefix + "unservedversion":
		d.set("NotServed", "true")
	case prefix + "skipversion", prefix + "skip":
		d.isSkipped = true
	default:
		return "", false
	}
	return "", true
}

// pairs returns labels or annotations, such as a=b;c=d, as members of a map in Go.
func pairs(value string) (all []string) {
	for _, item := range listOf(value) {
		key, value, _ := strings.Cut(item, "=")
		all = append(all, fmt.Sprintf("%q: %q,", key, value))
	}
	return all
}

// aliasOf returns the declaration of a kind by kube.CustomResource. It is empty for a kind with other fields.
func aliasOf(t *ast.TypeSpec) string {
	spec, status := "", "kube.None"
	for _, field := range t.Type.(*ast.StructType).Fields.List {
		for _, name := range field.Names {
			switch name.Name {
			case "Spec":
				spec = typeName(field.Type)
			case "Status":
				status = typeName(field.Type)
			default:
				return ""
			}
		}
	}
	if spec == "" {
		return ""
	}
	return fmt.Sprintf("type %s = kube.CustomResource[%s, %s]", t.Name.Name, spec, status)
}

// hasField reports whether a struct has a field of a name.
func hasField(t *ast.TypeSpec, name string) bool {
	s, ok := t.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == name })
	})
}
