package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Warnings returns a sentence for each part of the definitions of types that generators of clients in other languages
// lose. A server accepts these parts. A sentence names the Go field, and its file and line if the Definition has its
// Source. The key acceptLoss in the tag of the field removes the sentence. Without a loss the key itself is in a
// sentence. The error is that of [From].
func Warnings(types ...kube.Type) ([]string, error) {
	if _, err := From(types...); err != nil {
		return nil, err
	}
	var all []string
	for _, t := range types {
		b := newBuilder(t)
		root := b.schemaOfObject(t)
		b.losses.find("", root, "", &schemaField{goName: ident.GoTypeName(t.Go), isOwn: true})
		for _, err := range b.losses.found.all {
			if text := err.Error(); !slices.Contains(all, text) { // two versions can share a struct
				all = append(all, text)
			}
		}
	}
	return all, nil
}

// lossFinder finds what generators of clients lose of the schema of one root type.
type lossFinder struct {
	// fields holds the field that each schema of a field belongs to.
	fields map[*Schema]*schemaField
	found  *problems
}

// schemaField is the Go field of a schema.
type schemaField struct {
	// goName is the Go name for errors, and path the path in the object.
	goName, path string
	// isOwn is true if the author of the resource can tag the field.
	isOwn bool
	// acceptingTag names the tag that has the key acceptLoss. It is empty if no tag has the key.
	acceptingTag string
	hasLoss      bool
}

// find adds the losses of s, the value called name at path, and of the values within s. nearest is the nearest field
// around s that a tag can describe. A loss within a type of another module belongs to that field.
func (l *lossFinder) find(name string, s *Schema, path string, nearest *schemaField) {
	own := l.fields[s]
	if own != nil && (own.isOwn || own.acceptingTag != "") {
		own.path, nearest = path, own
	}
	for _, loss := range lossesOf(name, s) {
		nearest.hasLoss = true
		if nearest.acceptingTag != "" {
			continue
		}
		if path != nearest.path {
			loss = fmt.Errorf("%s: %w", path, loss)
		}
		l.found.addf(nearest.goName, `%v; to accept the loss, tag the field crd:"acceptLoss"`, loss)
	}
	for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
		l.find(member, s.Properties[member], path+jsonPath([]string{member}), nearest)
	}
	for _, element := range []*Schema{s.Items, s.AdditionalProperties} {
		if element != nil {
			l.find("", element, path+"[*]", nearest)
		}
	}
	if nearest == own && own.acceptingTag != "" && !own.hasLoss {
		l.found.addf(own.acceptingTag, "acceptLoss: generators of clients lose nothing here: leave the key out")
	}
}

// lossesOf returns what generators of clients lose of s itself, the value called name.
func lossesOf(name string, s *Schema) []error {
	losses := enumLosses(s)
	if name == "$ref" {
		losses = append(losses,
			errors.New("generators of clients refuse or misread the name $ref: give the field another name"))
	}
	if s.PreserveUnknownFields && len(s.Properties) > 0 {
		losses = append(losses, errors.New("preserveUnknownFields on a struct with fields: generated clients drop all "+
			"other fields: keep these in a field of the type map[string]any"))
	}
	if strings.Contains(s.Description, "*/") {
		losses = append(losses,
			errors.New(`the description contains "*/", which ends a comment of generated code: change the comment`))
	}
	return losses
}

// enumLosses returns the values of an enum that generators of clients lose, because they make a name of each value.
// The names have letters and digits only, and often one case: ">=" has no name, and "GET" and "get" have one.
func enumLosses(s *Schema) (losses []error) {
	var names []string
	for _, value := range s.Enum {
		var text string
		if json.Unmarshal(value, &text) != nil {
			continue
		}
		switch other := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, text) }); {
		case text == "":
			losses = append(losses, errors.New(`generators of clients lose or rename the value "" of the enum: `+
				`leave "" out of the enum, and the field out of objects`))
		case !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
			losses = append(losses, fmt.Errorf("generators of clients lose or rename the value %q of the enum: "+
				"give it a name of letters", text))
		case other >= 0:
			losses = append(losses, fmt.Errorf("the values %q and %q of the enum differ in case only, "+
				"and generators of clients lose one: give one another name", names[other], text))
		}
		names = append(names, text)
	}
	return losses
}
