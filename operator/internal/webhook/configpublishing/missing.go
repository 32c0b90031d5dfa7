package configpublishing

import (
	"errors"
	"fmt"
	"maps"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/webhook/followed"
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

// missing returns the error about the configuration f. If Helm has installed the program, the command makes an object of the same
// release: Helm does not remove others.
func (k *keeper) missing(f *followed.Object[object]) error {
	var made struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		} `json:"metadata"`
	}
	made.APIVersion, made.Kind = f.Resource.GroupVersion().String(), f.Resource.Kind
	labels, annotations := k.deployment.Marks()
	made.Metadata.Name, made.Metadata.Labels, made.Metadata.Annotations = f.Name, make(map[string]string), annotations
	maps.Copy(made.Metadata.Labels, k.config.Labels)
	maps.Copy(made.Metadata.Labels, labels)
	text, err := kube.Marshal(made)
	if err != nil {
		return err
	}
	return &missingError{f.String(), fmt.Sprintf("echo '%s' | kubectl create -f -", text)}
}
