package history

var NewRecorderWith = newRecorder

// Recorder returns the recorder of a recording.
func (c *Recording) Recorder() *Recorder { return c.recorder }

// HashOfSecret returns what stands for a value of a Secret in the texts of a run.
func HashOfSecret(h History, encoded string) string {
	return (&flattener{words: wordsOf(h)}).hashOfSecret(encoded)
}
