package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/crd"
)

// header begins each file that each call replaces. A file without the header belongs to the user.
const header = "# Made by "

// Documents returns the objects as YAML documents. Each document begins with a line of three dashes.
func Documents(objects []Object) ([]byte, error) {
	var b bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write the %s %s: %w", Kind(object), Name(object), err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.Bytes(), nil
}

// file is a file to write.
type file struct {
	name, text string
	// isWrittenOnce is true if the file belongs to the user: it is written only if it does not exist.
	isWrittenOnce bool
}

// writeFiles writes files below dir. If a file would replace a file of the user, writeFiles writes none of
// them, and returns an error.
func writeFiles(dir string, files []file) error {
	var write []file
	var errs []error
	for _, f := range files {
		f.name = filepath.Join(dir, filepath.FromSlash(f.name))
		before, err := os.ReadFile(f.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
			continue
		case f.isWrittenOnce:
			continue
		case !bytes.HasPrefix(before, []byte(header)):
			errs = append(errs,
				fmt.Errorf("the file %s does not begin with %q, so it was not made by this command: move it away", f.name, header))
			continue
		}
		write = append(write, f)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, f := range write {
		if err := os.MkdirAll(filepath.Dir(f.name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(f.name, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// WriteDefinitions writes each definition of a program into a file of the folder dir. The file has the name of the
// definition, as in webapps.example.com.yaml. Each call makes the files anew.
func WriteDefinitions(dir, program string, definitions []*crd.CustomResourceDefinition) error {
	var files []file
	for _, definition := range definitions {
		var text strings.Builder
		text.WriteString(header + program + " crd --folder, which makes this file anew.\n")
		if err := crd.WriteYAML(&text, definition); err != nil {
			return err
		}
		files = append(files, file{name: definition.Metadata.Name + ".yaml", text: text.String()})
	}
	return writeFiles(dir, files)
}

// WriteBase writes the objects of a program as a base of Kustomize into the folder dir. Each call makes the
// file manifests.yaml anew. The file kustomization.yaml belongs to the user once it exists.
func WriteBase(dir, program string, objects []Object) error {
	text, err := Documents(objects)
	if err != nil {
		return err
	}
	return writeFiles(dir, []file{
		{
			name: "manifests.yaml",
			text: header + program + " manifests --kustomize, which makes this file anew.\n" + string(text),
		},
		{name: "kustomization.yaml", text: "# Do not set namespace, namePrefix or nameSuffix here or in an overlay: they do not change the names in roles, labels and arguments.\n# Run manifests with --namespace or --name-prefix instead.\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- manifests.yaml\n", isWrittenOnce: true},
	})
}
