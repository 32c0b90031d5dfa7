package history

var NewRecorderWith = newRecorder

// Recorder returns the recorder of a recording.
func (c *Recording) Recorder() *Recorder { return c.recorder }
