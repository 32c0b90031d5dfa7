package history

import "github.com/yare-go/yare/explore/internal/finding"

var NewRecorderWith = newRecorder

// Recorder returns the recorder of a recording.
func (c *Recording) Recorder() *Recorder { return c.recorder }

// HashOfSecret returns what stands for a value of a Secret in the texts of a run.
func HashOfSecret(h History, encoded string) string {
	return (&flattener{words: wordsOf(h)}).hashOfSecret(encoded)
}

// Unused returns the acceptances that no difference has matched.
func (a *Accepted) Unused() (unused []finding.Acceptance) {
	for entry, count := range a.All() {
		if count == 0 {
			unused = append(unused, entry)
		}
	}
	return unused
}
