package page

// condition is a condition of an object, as far as the page shows it.
type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// maxConditions bounds the conditions of one write or change that are kept.
const maxConditions = 8

// conditionsChanged returns the conditions of after that have another status than in before.
func conditionsChanged(before, after *shownObject) (changed []condition) {
	for i := range after.Status.Conditions {
		now := &after.Status.Conditions[i]
		if len(changed) == maxConditions || before.hasCondition(now.Type, now.Status) {
			continue
		}
		changed = append(changed, condition{
			Type: shortened(now.Type, maxValue), Status: shortened(now.Status, maxValue),
			Reason: shortened(now.Reason, maxValue), Message: shortened(now.Message, maxValue),
		})
	}
	return changed
}
