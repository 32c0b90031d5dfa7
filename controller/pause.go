package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/internal/cache"
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
		s.pausedBy = pauseAnnotation(annotation)
	})
}

// pauseAnnotation is the annotation of [Paused], or empty.
type pauseAnnotation string

// isOn reports whether obj has the annotation.
func (a pauseAnnotation) isOn(obj kube.Object) bool {
	_, has := obj.GetAnnotations()[string(a)]
	return has && a != ""
}

// mayHaveEnded reports whether a change of an object of the reconciled kind may have removed the
// annotation.
func (a pauseAnnotation) mayHaveEnded(c cache.Change) bool {
	if a == "" || c.Type != cache.Modified || c.Before.AnnotationsHash == c.After.AnnotationsHash {
		return false
	}
	has, err := hasAnnotation(c.BeforeObject(), string(a))
	return has || err != nil
}

func hasAnnotation(o cache.Object, name string) (bool, error) {
	object, err := o.Bytes()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", o.Key(), err)
	}
	var read metav1.PartialObjectMetadata
	if err := kube.Unmarshal(object, &read); err != nil {
		return false, fmt.Errorf("decode the annotations of %s: %w", o.Key(), err)
	}
	_, has := read.Annotations[name]
	return has, nil
}
