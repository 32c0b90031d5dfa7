package definitions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Comparison compares the definitions of a program with other ones, for crd --diff.
type Comparison struct {
	// With is the path of a file with definitions in YAML or JSON, "-" for Stdin, or "cluster".
	With string
	// WithDescriptions compares the descriptions too.
	WithDescriptions bool

	// Program is the name of the program.
	Program string
	// Out gets a line for each difference.
	Out   io.Writer
	Stdin io.Reader
	// NewClient returns a client of the cluster, where definitions have the resource Resource.
	NewClient func() (*kube.Client, error)
	Resource  wire.Resource
}

// Print prints the differences, and returns an error if there are any.
func (c Comparison) Print(ctx context.Context, definitions []*crd.CustomResourceDefinition) error {
	others, err := c.read(ctx, definitions)
	if err != nil {
		return fmt.Errorf("compare the definitions with %s: %w", c.with(), err)
	}
	count := 0
	for _, definition := range definitions {
		name := definition.Metadata.Name
		other := others[name]
		if other == nil {
			count++
			fmt.Fprintf(c.Out, "%s: %s has no definition with this name%s\n", name, c.with(), namesOf(others))
			continue
		}
		ours, err := decodeValue(definition)
		if err != nil {
			return err
		}
		for _, d := range Differences(ours, other, c.WithDescriptions) {
			count++
			fmt.Fprintf(c.Out, "%s %s: %s\n", name, d.Path, c.describe(d))
		}
	}
	if count > 0 {
		return fmt.Errorf("the number of differences from %s is %d", c.with(), count)
	}
	return nil
}

// describe returns the two values of a difference, and the note.
func (c Comparison) describe(d Difference) string {
	value := func(text string) string {
		if text == "" {
			return "nothing"
		}
		return text
	}
	line := fmt.Sprintf("%s has %s, %s has %s", c.Program, value(d.Ours), c.with(), value(d.Theirs))
	if d.Note != "" {
		line += " (" + d.Note + ")"
	}
	return line
}

// with returns what the other definitions are called.
func (c Comparison) with() string {
	switch c.With {
	case "-":
		return "the standard input"
	case "cluster":
		return "the cluster"
	}
	return c.With
}

// read returns the other definitions by name.
func (c Comparison) read(
	ctx context.Context, definitions []*crd.CustomResourceDefinition,
) (map[string]map[string]any, error) {
	switch {
	case c.With == "cluster":
		return c.readCluster(ctx, definitions)
	case c.With == "-":
		text, err := io.ReadAll(c.Stdin)
		if err != nil {
			return nil, err
		}
		return readDocuments(text)
	}
	text, err := os.ReadFile(c.With)
	if err != nil {
		return nil, err
	}
	return readDocuments(text)
}

// readCluster returns the definitions of the cluster with the names of definitions.
func (c Comparison) readCluster(
	ctx context.Context, definitions []*crd.CustomResourceDefinition,
) (map[string]map[string]any, error) {
	client, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]any)
	for _, definition := range definitions {
		name := definition.Metadata.Name
		response, err := client.Do(ctx, &wire.Request{Verb: wire.VerbGet, Resource: c.Resource, Name: name})
		if kube.IsNotFound(err) {
			continue
		}
		var other map[string]any
		if err == nil {
			err = kube.Unmarshal(response.Body, &other)
		}
		if err != nil {
			return nil, err
		}
		all[name] = other
	}
	return all, nil
}

// separator matches the line between two documents of YAML.
var separator = regexp.MustCompile(`(?m)^---.*$`)

// readDocuments returns the definitions in a text of YAML or JSON by name. Objects of other kinds are left out.
func readDocuments(text []byte) (map[string]map[string]any, error) {
	all := make(map[string]map[string]any)
	var add func(object map[string]any)
	add = func(object map[string]any) {
		items, _ := object["items"].([]any)
		for _, item := range items { // of a List
			add(asSchema(item))
		}
		if metadata := asSchema(object["metadata"]); object["kind"] == "CustomResourceDefinition" {
			all[fmt.Sprint(metadata["name"])] = object
		}
	}
	for _, document := range separator.Split(string(text), -1) {
		encoded, err := yaml.YAMLToJSON([]byte(document))
		var value any
		if err == nil {
			err = kube.Unmarshal(encoded, &value)
		}
		if err != nil {
			return nil, err
		}
		add(asSchema(value))
	}
	if len(all) == 0 {
		return nil, errors.New("it has no CustomResourceDefinition")
	}
	return all, nil
}

// namesOf returns a part of a sentence with the names of definitions.
func namesOf(all map[string]map[string]any) string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return ", and has " + strings.Join(names, ", ")
}

// decodeValue returns a definition as decoded JSON.
func decodeValue(definition *crd.CustomResourceDefinition) (value map[string]any, err error) {
	encoded, err := kube.Marshal(definition)
	if err == nil {
		err = kube.Unmarshal(encoded, &value)
	}
	return value, err
}
