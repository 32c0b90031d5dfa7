package clock

import (
	"sync"
	"time"
)

// hold is a member that is busy and never waits.
type hold struct{ sync.Mutex }

func (*hold) IsAtRestLocked() bool                  { return false }
func (*hold) UntilDueLocked() (time.Duration, bool) { return 0, false }
func (*hold) MovedLocked()                          {}

// Hold keeps c from being moved until release is called. Errors show name.
func (c *Clock) Hold(name string) (release func()) { return c.Add(name, new(hold)) }
