package dev

import "testing"

// Regression: kubectl wait failed, and so did yare dev, if the server had not written any condition
// of a new CustomResourceDefinition yet.
func TestAreServed(t *testing.T) {
	t.Parallel()
	const none, established = "status: {conditions: null}", `status: {conditions: [{type: Established, status: "True"}]}`
	for text, want := range map[string]bool{
		none:        false,
		established: true,
		`status: {conditions: [{type: Established, status: "False"}]}`: false,
		"items: [{" + established + "}, {" + established + "}]":        true,
		"items: [{" + established + "}, {" + none + "}]":               false,
	} {
		if got, err := areServed(text); got != want || err != nil {
			t.Errorf("%s: %t, %v, want %t", text, got, err, want)
		}
	}
}
