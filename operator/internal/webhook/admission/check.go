package admission

import "errors"

// Check returns an error if a webhook cannot be used, or if two webhooks of one role are for one kind. It returns all
// errors together.
func Check(webhooks []*Webhook) error {
	var problems []error
	for _, each := range webhooks {
		problems = append(problems, each.Err())
	}
	return errors.Join(append(problems, CheckDoubles(webhooks))...)
}

// CheckDoubles returns an error for each webhook whose role and kind an earlier one has.
func CheckDoubles(webhooks []*Webhook) error {
	var problems []error
	names := make(map[string]bool)
	for _, each := range webhooks {
		if name := each.Name(); name != "" && names[name] {
			problems = append(problems, errors.New(each.String()+" is there twice: make one function of the two"))
		} else {
			names[name] = true
		}
	}
	return errors.Join(problems...)
}
