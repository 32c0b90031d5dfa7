package configpublishing

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// A platform excludes its own objects from the webhooks of its users by expressions that it adds to their selectors. A
// selector is one value for server-side apply, so that no two managers can share it. Therefore a leader keeps the
// expressions of others that exclude objects. It removes those that select objects, because a label that no object has
// would switch the webhook off.

// mergeSelector returns what a selector should be: the expressions of own, and the excluding expressions of others in
// current. former are the expressions that the program had when it wrote current. If current is right, also in another
// order, mergeSelector returns current. For example:
//
//	own       shop In [a]
//	former    shop NotIn [b]
//	current   managed-by NotIn [platform], team Exists, shop In [a, b], shop NotIn [b]
//	merged    shop In [a], managed-by NotIn [platform]
func mergeSelector(current, own, former *metav1.LabelSelector) *metav1.LabelSelector {
	if current == nil {
		return own
	}
	merged := &metav1.LabelSelector{}
	if own != nil {
		merged.MatchLabels, merged.MatchExpressions = own.MatchLabels, slices.Clone(own.MatchExpressions)
	}
	isRight := maps.Equal(current.MatchLabels, merged.MatchLabels)
	for _, e := range current.MatchExpressions {
		switch {
		case hasExpression(own, e):
		case isExcluding(e) && !hasExpression(former, e):
			merged.MatchExpressions = append(merged.MatchExpressions, e)
		default:
			isRight = false
		}
	}
	if isRight && len(current.MatchExpressions) == len(merged.MatchExpressions) {
		return current
	}
	if own == nil && len(merged.MatchExpressions) == 0 {
		return nil
	}
	return merged
}

// hasExpression reports whether a selector, which may be nil, has an expression.
func hasExpression(s *metav1.LabelSelector, e metav1.LabelSelectorRequirement) bool {
	return s != nil && slices.ContainsFunc(s.MatchExpressions, func(each metav1.LabelSelectorRequirement) bool {
		return each.Key == e.Key && each.Operator == e.Operator && slices.Equal(each.Values, e.Values)
	})
}

// isExcluding reports whether an expression is true for all objects without its label.
func isExcluding(e metav1.LabelSelectorRequirement) bool {
	return e.Operator == metav1.LabelSelectorOpNotIn || e.Operator == metav1.LabelSelectorOpDoesNotExist
}

// hasForeignExpressions reports whether others exclude objects by a selector of e.
func hasForeignExpressions(e *configuration.Entry) bool {
	namespaces, objects := e.RecordedSelectors()
	return hasExcluding(e.NamespaceSelector, namespaces) || hasExcluding(e.ObjectSelector, objects)
}

// hasExcluding reports whether current has an excluding expression that own does not have. Both may be nil.
func hasExcluding(current, own *metav1.LabelSelector) bool {
	return current != nil && slices.ContainsFunc(current.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return isExcluding(e) && !hasExpression(own, e)
	})
}
