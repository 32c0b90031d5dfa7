// Package tags rewrites the markers of kubebuilder in Go files into crd tags.
//
// A marker of a field becomes a key of the tag of the field, and a marker of a type becomes a method of the type:
//
//	before                                       after
//	// +kubebuilder:validation:Minimum=0         // (nothing)
//	Size int32 `json:"size"`                     Size int32 `json:"size" crd:"minimum=0"`
//
//	// +kubebuilder:validation:Enum=A;B          type Mode string
//	type Mode string                             func (Mode) CRDTag() string { return "enum=A|B" }
//
// The markers of a kind become a method Definition. A marker without a counterpart stays as a comment, with a note.
package tags

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Note is something that the author has to know or to do.
type Note struct {
	// Position is the file and the line.
	Position string
	Text     string
}

// Rewrite returns the text of a Go file with crd tags in place of markers, and notes in the order of the file. It
// reads the other files of the folder too, and writes nothing. A text that Rewrite has returned stays as it is.
func Rewrite(path string) (text []byte, notes []Note, err error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	r := &rewriter{path: path, source: source, files: token.NewFileSet()}
	r.file, err = parser.ParseFile(r.files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	if r.folder, err = readFolder(path); err != nil {
		return nil, nil, err
	}
	r.rewrite()
	text, err = format.Source(r.edited())
	if err != nil {
		return nil, nil, fmt.Errorf("format %s: %w", path, err)
	}
	return text, r.notes, nil
}

// edit replaces a part of a text.
type edit struct {
	from, to int
	text     string
}

// rewriter rewrites one file.
type rewriter struct {
	path     string
	source   []byte
	files    *token.FileSet
	file     *ast.File
	folder   *folder
	edits    []edit
	notes    []Note
	usesKube bool
}

func (r *rewriter) note(at token.Pos, format string, args ...any) {
	position := r.files.Position(at)
	r.notes = append(r.notes, Note{fmt.Sprintf("%s:%d", r.path, position.Line), fmt.Sprintf(format, args...)})
}

func (r *rewriter) replace(from, to token.Pos, text string) {
	r.edits = append(r.edits, edit{r.files.Position(from).Offset, r.files.Position(to).Offset, text})
}

// edited returns the text with all edits.
func (r *rewriter) edited() []byte {
	slices.SortStableFunc(r.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	end := 0
	for _, e := range r.edits {
		out.Write(r.source[end:e.from])
		out.WriteString(e.text)
		end = max(end, e.to)
	}
	out.Write(r.source[end:])
	return out.Bytes()
}

// rewrite makes the edits and the notes.
func (r *rewriter) rewrite() {
	hasMarkers := slices.ContainsFunc(r.file.Comments, func(g *ast.CommentGroup) bool {
		return slices.ContainsFunc(g.List, func(c *ast.Comment) bool {
			m, ok := parseMarker(c)
			return ok && isOfDefinition(m)
		})
	})
	if !hasMarkers { // the file has the rules of yare about required fields
		return
	}
	before := r.file.Name.End()
	for _, declaration := range r.file.Decls {
		if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			var methods strings.Builder
			for i, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					if i == 0 && !d.Lparen.IsValid() {
						methods.WriteString(r.rewriteType(t, before, d.Pos()))
					} else {
						methods.WriteString(r.rewriteType(t, before, t.Pos()))
					}
					before = t.End()
				}
			}
			r.replace(d.End(), d.End(), methods.String())
		}
		before = declaration.End()
	}
	if r.usesKube {
		r.addImport("github.com/yare-go/yare/kube")
	}
}

// addImport adds an import, unless the file has it.
func (r *rewriter) addImport(path string) {
	for _, spec := range r.file.Imports {
		if spec.Path.Value == strconv.Quote(path) {
			return
		}
	}
	if len(r.file.Imports) == 0 {
		r.replace(r.file.Name.End(), r.file.Name.End(), "\n\nimport "+strconv.Quote(path)+"\n")
		return
	}
	last := r.file.Imports[len(r.file.Imports)-1]
	line := "\n\n" + strconv.Quote(path)
	if d, ok := r.file.Decls[0].(*ast.GenDecl); ok && !d.Lparen.IsValid() {
		line = "\n\nimport " + strconv.Quote(path)
	}
	r.replace(last.End(), last.End(), line)
}

// markersBetween returns the markers of the comments between two positions.
func (r *rewriter) markersBetween(from, to token.Pos) (all []marker) {
	line := r.files.Position(from).Line
	for _, group := range r.file.Comments {
		if group.Pos() < from || group.End() > to {
			continue
		}
		for _, c := range group.List {
			if m, ok := parseMarker(c); ok && r.files.Position(c.Pos()).Line > line {
				all = append(all, m)
			}
		}
	}
	return all
}

// remove removes the line of a marker, or leaves a text of it. An empty line of the comment before it goes too, if
// nothing follows.
func (r *rewriter) remove(m marker, remains string) {
	from, to := r.files.Position(m.comment.Pos()).Offset, r.files.Position(m.comment.End()).Offset
	if remains != "" {
		if remains != m.text {
			r.edits = append(r.edits, edit{from, to, "// +" + remains})
		}
		return
	}
	from = bytes.LastIndexByte(r.source[:from], '\n') + 1
	r.edits = append(r.edits, edit{from, to + 1, ""})
}

// convert returns the directives of markers, and removes these markers. skip reports whether a marker is left alone.
func (r *rewriter) convert(markers []marker, isList bool, skip func(marker) bool) (all []directive) {
	isSchemaless := slices.ContainsFunc(markers, func(m marker) bool { return m.name == validation+"Schemaless" })
	for _, m := range markers {
		if skip(m) {
			continue
		}
		directives, remains, reason := directivesOf(m, isList)
		if isSchemaless && m.name == validation+"Type" {
			all = append([]directive{{"type", m.value, true}}, all...) // in place of any
		}
		all = append(all, directives...)
		r.remove(m, remains)
		if remains != "" && reason != isNoMatter {
			r.note(m.comment.Pos(), "+%s stays: %s", remains, reason)
		}
	}
	r.trim(markers)
	return all
}

// trim removes the empty lines of comments that the removed markers leave at the end.
func (r *rewriter) trim(markers []marker) {
	for _, group := range r.file.Comments {
		if len(markers) == 0 || !slices.Contains(group.List, markers[len(markers)-1].comment) {
			continue
		}
		for _, c := range slices.Backward(group.List) {
			offset := r.files.Position(c.Pos()).Offset
			isRemoved := slices.ContainsFunc(r.edits, func(e edit) bool {
				return e.from <= offset && offset < e.to && e.text == ""
			})
			switch {
			case strings.TrimSpace(c.Text) == "//" && !isRemoved:
				r.remove(marker{comment: c}, "")
			case !isRemoved:
				return
			}
		}
	}
}

// rewriteType rewrites the fields of a type, and returns its new methods. Its comments are between two positions.
func (r *rewriter) rewriteType(t *ast.TypeSpec, from, to token.Pos) string {
	if embeds(t, "ListMeta") { // the list of a kind is in no definition
		return ""
	}
	ast.Inspect(t.Type, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			before := s.Fields.Opening
			for _, field := range s.Fields.List {
				r.rewriteField(field, before, s == t.Type && embeds(t, "TypeMeta", "ObjectMeta"))
				before = field.End()
			}
		}
		return true
	})
	markers := r.markersBetween(from, to)
	if embeds(t, "TypeMeta", "ObjectMeta") {
		return r.definitionOf(t, markers)
	}
	return r.methodsOf(t, markers)
}

// methodsOf returns the methods CRDTag and Rules of a type with markers.
func (r *rewriter) methodsOf(t *ast.TypeSpec, markers []marker) string {
	name := t.Name.Name
	isRule := func(d directive) bool { return d.key == "rule" || d.key == "message" }
	isTaken := r.folder.methods[name+".CRDTag"] || r.folder.methods[name+".Rules"]
	canHaveMethods := !t.Assign.IsValid() && t.TypeParams == nil
	all := r.convert(markers, r.folder.isList(t.Type), func(m marker) bool {
		directives, _, _ := directivesOf(m, false)
		if len(directives) > 0 && (isTaken || !canHaveMethods) {
			r.note(m.comment.Pos(), "+%s stays: write it into the methods CRDTag and Rules of %s", m.text, name)
			return true
		}
		return false
	})
	// A type that is declared by another one has none of its methods.
	base := typeName(t.Type)
	_, isNamed := t.Type.(*ast.Ident)
	hasTag, hasRules := r.folder.hasMethod(base, "CRDTag"), r.folder.hasMethod(base, "Rules")
	if isInherited := isNamed && canHaveMethods && !isTaken; !isInherited {
		hasTag, hasRules = false, false
	}
	if len(all) == 0 && !hasTag && !hasRules {
		return ""
	}
	rules := rulesOf(all)
	all = slices.DeleteFunc(all, isRule)
	text, tag := "", goString(tagOf("", all))
	if hasTag && tag == `""` {
		tag = fmt.Sprintf("new(%s).CRDTag()", base)
	} else if hasTag {
		tag = fmt.Sprintf("new(%s).CRDTag() + \",\" + %s", base, tag)
	}
	if hasRules && rules == "" {
		rules = fmt.Sprintf("new(%s).Rules()", base)
	} else if hasRules {
		rules = fmt.Sprintf("append(new(%s).Rules(), %s...)", base, rules)
	}
	if tag != `""` {
		text += fmt.Sprintf("\n\n// CRDTag returns the crd tag of each %s.\nfunc (%s) CRDTag() string { return %s }\n", name, name, tag)
		if embedder := r.folder.embedders[name]; embedder != "" {
			r.note(t.Pos(), "%s embeds %s: the method CRDTag of an embedded type does not hold for the struct around it, so give %s one", embedder, name, embedder)
		}
	}
	if rules != "" {
		r.usesKube = true
		text += fmt.Sprintf("\n\n// Rules returns the rules for each %s.\nfunc (%s) Rules() []kube.Rule {\n\treturn %s\n}\n", name, name, rules)
	}
	return text
}

// definitionOf returns the method Definition of a kind. The markers that it has go.
func (r *rewriter) definitionOf(t *ast.TypeSpec, markers []marker) string {
	kind := t.Name.Name
	d := definition{fields: make(map[string]string)}
	d.set("Group", strconv.Quote(r.folder.group))
	d.set("Version", strconv.Quote(r.file.Name.Name))
	d.set("Kind", strconv.Quote(kind))
	losses := make(map[string]marker)
	known := make(map[string]bool)
	for _, m := range markers {
		lost, ok := d.add(m, kind)
		if ok {
			known[m.text] = true
		}
		if lost != "" {
			losses[lost] = m
		}
	}
	if len(known) == 0 {
		return ""
	}
	if d.isSkipped || r.folder.methods[kind+".Definition"] {
		r.note(t.Pos(), "the markers of %s stay: it is no kind of its own, or has a method Definition", kind)
		return ""
	}
	for _, m := range markers {
		if known[m.text] {
			r.remove(m, "")
		}
	}
	r.convert(markers, false, func(m marker) bool { return known[m.text] })
	for _, lost := range slices.Sorted(maps.Keys(losses)) {
		r.note(losses[lost].comment.Pos(), "+%s is a part of Definition, with a difference: %s", losses[lost].text, lost)
	}
	if r.folder.group == "" {
		r.note(t.Pos(), "the Group of %s is missing in Definition, because no file of the folder has +groupName=…", kind)
	}
	if hasField(t, "Status") && !d.hasStatus {
		r.note(t.Pos(), "%s gets a subresource status, which it had not: a client has to write the status on its own", kind)
	}
	if alias := aliasOf(t); alias != "" {
		r.note(t.Pos(), "%s has a method Definition. When no other code needs methods of %[1]s, give Definition to the type of its spec, and write: %s", kind, alias)
	}
	for _, list := range []struct {
		name, kind string
		items      []string
	}{
		{"Columns", "[]kube.Column", d.columns}, {"Tags", "map[string]string", d.selectable},
		{"Labels", "map[string]string", d.labels}, {"Annotations", "map[string]string", d.annotations},
	} {
		if len(list.items) > 0 {
			d.set(list.name, list.kind+"{\n"+strings.Join(list.items, "\n")+"\n}")
		}
	}
	if rules := rulesOf(d.rules); rules != "" {
		d.set("Rules", rules)
	}
	r.usesKube = true
	var fields strings.Builder
	for _, name := range d.names {
		fmt.Fprintf(&fields, "%s: %s,\n", name, d.fields[name])
	}
	return fmt.Sprintf("\n\n// Definition returns the definition of the kind %s.\nfunc (%[1]s) Definition() kube.Definition {\nreturn kube.Definition{\n%s}\n}\n", kind, fields.String())
}

// rulesOf returns the rules of directives as an expression of Go, or nothing.
func rulesOf(all []directive) string {
	var rules []string
	for i, d := range all {
		if d.key == "rule" {
			rule := "{Rule: " + goString(d.value)
			if i+1 < len(all) && all[i+1].key == "message" {
				rule += ", Message: " + goString(all[i+1].value)
			}
			rules = append(rules, rule+"},")
		}
	}
	if rules == nil {
		return ""
	}
	return "[]kube.Rule{\n" + strings.Join(rules, "\n") + "\n}"
}

// goString returns a text as a literal of Go.
func goString(text string) string {
	if strings.ContainsAny(text, "\"\\") && strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// jsonTag returns the name of a field in JSON, its options, and the whole struct tag.
func jsonTag(field *ast.Field) (name, options string, tag reflect.StructTag) {
	if field.Tag != nil {
		text, err := strconv.Unquote(field.Tag.Value)
		if err == nil {
			tag = reflect.StructTag(text)
		}
	}
	name, options, _ = strings.Cut(tag.Get("json"), ",")
	return name, options, tag
}

// rewriteField moves the markers of a field into its tag. Its comments begin after a position. Servers know the
// metadata and the status of an object, which is the root of a schema.
func (r *rewriter) rewriteField(field *ast.Field, after token.Pos, isInRoot bool) {
	name, options, tag := jsonTag(field)
	markers := r.markersBetween(after, field.Pos())
	if name == "" || name == "-" {
		for _, m := range markers {
			if directives, _, _ := directivesOf(m, false); len(directives) > 0 {
				r.note(m.comment.Pos(), "+%s stays: the field has no name in JSON, so it has no tag", m.text)
			}
		}
		return
	}
	old := tag.Get("crd")
	keys := keysOf(old)
	all := r.convert(markers, r.folder.isList(field.Type), func(marker) bool { return false })
	isDecided := isInRoot && name != "spec" ||
		slices.ContainsFunc(all, func(d directive) bool { return d.key == "default" }) ||
		slices.Contains(keys, "required") || slices.Contains(keys, "optional") || slices.Contains(keys, "default")
	if key := r.requirement(field, options, markers); key != "" && !isDecided {
		all = append(all, directive{key: key})
	}
	if text := tagOf(old, all); text != old {
		others := strings.Replace(string(tag), "crd:"+strconv.Quote(old), "", 1)
		whole := strings.TrimSpace(others) + " crd:" + strconv.Quote(text)
		literal := "`" + whole + "`"
		if !strconv.CanBackquote(whole) {
			literal = strconv.Quote(whole)
		}
		r.replace(field.Tag.Pos(), field.Tag.End(), literal)
	}
}

// requirement returns the key required or optional where the rules of yare alone would not give what controller-gen
// gives.
func (r *rewriter) requirement(field *ast.Field, options string, markers []marker) string {
	has := func(names ...string) bool {
		return slices.ContainsFunc(markers, func(m marker) bool { return slices.Contains(names, m.name) })
	}
	isOmitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
	isRequired := !r.folder.isOptional && !isOmitted
	if has("required", "k8s:required", validation+"Required") {
		isRequired = true
	}
	if has("optional", "k8s:optional", validation+"Optional") {
		isRequired = false
		if !isOmitted {
			return "optional" // without a key, nothing would show later that the field had the marker
		}
	}
	switch byYare := !isOmitted && !r.folder.isNullable(field.Type); {
	case isRequired == byYare:
		return ""
	case isRequired:
		return "required"
	default:
		return "optional"
	}
}
