package manifests

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// header begins each file that is written anew each time. A file without it belongs to the user.
const header = "# Made by "

// Stream returns the objects as YAML documents. Each document begins with a line of three dashes.
func Stream(objects []Object) ([]byte, error) {
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

// SetRevision gives the objects of the installation, which are labelled, the label of their
// revision, and returns the command line that deletes the objects of other revisions. A
// CustomResourceDefinition and a Namespace have no revision, so that nothing deletes them.
func (o *Options) SetRevision(objects []Object) (prune string, err error) {
	text, err := Stream(objects)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(text)
	revision := hex.EncodeToString(digest[:5])
	kinds := []string{"networkpolicy", "poddisruptionbudget", "clusterrolebinding", "clusterrole", "rolebinding", "role", "service", "serviceaccount", "deployment"}
	for _, object := range objects {
		if _, ok := at(object, "metadata", "labels")[LabelNamespace]; !ok {
			continue
		}
		addLabels(object, Object{LabelRevision: revision})
		version, _ := object["apiVersion"].(string)
		kinds = appendKind(kinds, version, Kind(object))
	}
	return fmt.Sprintf("kubectl delete --all-namespaces -l '%s=%s,%s=%s,%s!=%s' %s",
		LabelInstance, o.Name, LabelNamespace, o.Namespace, LabelRevision, revision, strings.Join(kinds, ",")), nil
}

// appendKind appends the name of a kind for kubectl, such as certificate.v1.cert-manager.io, unless
// kinds has it.
func appendKind(kinds []string, apiVersion, kind string) []string {
	name := strings.ToLower(kind)
	for _, k := range kinds {
		if k == name || strings.HasPrefix(k, name+".") {
			return kinds
		}
	}
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		name += "." + version + "." + group
	}
	return append(kinds, name)
}

// file is a file to write.
type file struct {
	name, text string
	// isOwned is true if the file belongs to the user: it is written only if it does not exist.
	isOwned bool
}

// writeFiles writes files below dir. It writes none if one of them would replace a file that it did not
// make.
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
		case f.isOwned:
			continue
		case !bytes.HasPrefix(before, []byte(header)):
			errs = append(errs, fmt.Errorf("the file %s does not begin with %q, so it was not made by this command: move it away", f.name, header))
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

// WriteBase writes a base of Kustomize into the folder dir: the file manifests.yaml, which is made
// anew each time, and kustomization.yaml, which belongs to the user once it exists.
func (o *Options) WriteBase(dir string, objects []Object) error {
	text, err := Stream(objects)
	if err != nil {
		return err
	}
	return writeFiles(dir, []file{
		{name: "manifests.yaml", text: header + o.Program + " manifests --kustomize, which makes this file anew.\n" + string(text)},
		{name: "kustomization.yaml", text: "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- manifests.yaml\n", isOwned: true},
	})
}
