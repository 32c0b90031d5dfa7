package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// Paused suspends the reconciles of an object that has the annotation, whatever its value, until
// the annotation is removed. Then the object is reconciled, also if a predicate rejects changes of annotations.
// Nothing is written for an object with the annotation: no finalizer is added either. A deletion is
// not paused: the cleanup of an object that has the finalizer runs. A call that is running when the
// annotation is added goes on.
//
//	controller.New(reconcile, controller.Paused("example.com/paused"))
func Paused(annotation string) Option {
	return optionFunc(func(s *settings) {
		if problems := validation.IsQualifiedName(annotation); len(problems) > 0 {
			s.reject(fmt.Errorf("the annotation %q of controller.Paused is not valid: %s", annotation, problems[0]))
		}
		s.pausedBy = annotation
	})
}

// isPaused reports whether obj has the annotation of [Paused].
func (s *settings) isPaused(obj kube.Object) bool {
	_, has := obj.GetAnnotations()[s.pausedBy]
	return has && s.pausedBy != ""
}

// mayEndPause reports whether a change of an object of the reconciled kind may have removed the
// annotation of [Paused].
func (s *settings) mayEndPause(c Change) bool {
	if s.pausedBy == "" || c.Type != Modified || c.Before.AnnotationsHash == c.After.AnnotationsHash {
		return false
	}
	has, err := hasAnnotation(c.BeforeObject(), s.pausedBy)
	return has || err != nil
}

func hasAnnotation(o cache.Object, name string) (bool, error) {
	object, err := o.Bytes()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", o.Key(), err)
	}
	var read struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := kube.Unmarshal(object, &read); err != nil {
		return false, fmt.Errorf("decode the annotations of %s: %w", o.Key(), err)
	}
	_, has := read.Metadata.Annotations[name]
	return has, nil
}
