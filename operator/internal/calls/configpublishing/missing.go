package configpublishing

import (
	"errors"
	"fmt"
	"maps"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/followed"
)

// missingError is the error of a leader about a configuration that an installation has to make.
type missingError struct {
	object string
	// command makes the configuration without entries, as the command manifests prints it.
	command string
}

func (e *missingError) Error() string {
	return fmt.Sprintf("the %s is missing: run %s", e.object, e.command)
}

// isMissing reports whether err has a missingError.
func isMissing(err error) bool { return errors.As(err, new(*missingError)) }

// newMissingError returns a missingError about the configuration c, which gets labels. If Helm has installed the
// Deployment, the command makes an object of the same release: Helm does not remove others.
func newMissingError(c followed.Reference[object], labels map[string]string, deployment *followed.Deployment) error {
	var made struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		} `json:"metadata"`
	}
	made.APIVersion, made.Kind = c.Resource.GroupVersion().String(), c.Resource.Kind
	marks, annotations := deployment.Marks()
	made.Metadata.Name, made.Metadata.Labels, made.Metadata.Annotations = c.Name, make(map[string]string), annotations
	maps.Copy(made.Metadata.Labels, labels)
	maps.Copy(made.Metadata.Labels, marks)
	text, err := kube.Marshal(made)
	if err != nil {
		return err
	}
	return &missingError{c.String(), fmt.Sprintf("echo '%s' | kubectl create -f -", text)}
}
