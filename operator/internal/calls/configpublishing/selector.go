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
// current. If current is right, also in another order, mergeSelector returns current. For example:
//
//	own       shop In [a]
//	current   managed-by NotIn [platform], team Exists, shop In [a, b]
//	merged    shop In [a], managed-by NotIn [platform]
func mergeSelector(current, own *metav1.LabelSelector) *metav1.LabelSelector {
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
		case isExcluding(e):
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

// hasForeignExpressions reports whether others exclude objects by a selector of e. The program itself never does.
func hasForeignExpressions(e *configuration.Entry) bool {
	for _, s := range []*metav1.LabelSelector{e.NamespaceSelector, e.ObjectSelector} {
		if s != nil && slices.ContainsFunc(s.MatchExpressions, isExcluding) {
			return true
		}
	}
	return false
}
