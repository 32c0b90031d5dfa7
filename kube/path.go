package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// checkSegment returns an error for a name that would lead a URL somewhere else: the object
// "web/status" is not the object web, and ".." is its namespace.
func checkSegment(what, value string) error {
	if problems := content.IsPathSegmentName(value); len(problems) > 0 {
		return fmt.Errorf("the %s %q %s", what, value, problems[0])
	}
	return nil
}
