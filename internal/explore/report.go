package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/report"
	"github.com/yare-go/yare/kube"
)

// WriteReport writes a record to a file: as a page if the name ends in .html, else as JSON.
func WriteReport(path string, r finding.Record) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if strings.HasSuffix(path, ".html") {
		err = report.HTML(file, r)
	} else {
		encoder := json.NewEncoder(file)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(r)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Close()
}

// ReadRecord reads what WriteReport has written as JSON.
func ReadRecord(path string) (r finding.Record, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is no record of an exploration in JSON: %w", path, err)
	}
	return r, nil
}

// Summary returns a finding in one line.
func Summary(f finding.Finding) string {
	var what []string
	for _, each := range f.Schedule.Faults {
		what = append(what, each.String())
	}
	if len(what) == 0 {
		for _, step := range f.Schedule.Steps {
			what = append(what, step.Name)
		}
	}
	return fmt.Sprintf("%s (%d of %d): %s", strings.Join(what, ", "), f.Seen, f.Tries, textOf(f.Differences))
}

// CRDs returns the output of the program's command crd, which programs that use yare have.
func (b Binary) CRDs(ctx context.Context) ([]byte, error) {
	out, err := exec.CommandContext(ctx, b.Path, "crd").Output()
	if err != nil {
		return nil, fmt.Errorf("%s crd: %w: an operator that does not use yare needs files to install", b.Path, err)
	}
	return out, nil
}

// Sample returns an object as a sample.
func Sample(o kube.Object) (json.RawMessage, error) {
	data, err := kube.Marshal(o)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	kind, err := kube.TypeOfObject(o)
	if err != nil {
		return nil, err
	}
	gvk := kind.Resource.GroupVersionKind
	object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
	delete(object, "status")
	return json.Marshal(object)
}
