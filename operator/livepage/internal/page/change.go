package page

import (
	"strings"
	"time"

	"github.com/yare-go/yare/internal/cache"
)

// change is a change of an object that a controller watches. Its contents are kept compressed, as the cache has them,
// and compared only for a reader.
type change struct {
	At     time.Time
	Object objectName
	// Type is "added", "modified" or "deleted".
	Type string
	// IsConfidential is true if the content is not shown. Then states is zero.
	IsConfidential bool
	// version is the resource version after the change, or the last one.
	version string
	// states has the states before and after the change.
	states cache.Change
}

// changeContent is what a change has changed.
type changeContent struct {
	difference
	// Manager is the field manager that has made the change, as far as the managed fields show it.
	Manager    string
	Conditions []condition
}

// content decompresses and compares the states before and after the change.
func (c *change) content() *changeContent {
	content := new(changeContent)
	if c.IsConfidential || c.Type == "deleted" {
		return content
	}
	after, err := c.states.AfterObject().Bytes()
	if err != nil {
		return content
	}
	now, then := decodeObject(after), new(shownObject)
	if before, err := c.states.BeforeObject().Bytes(); err == nil && c.Type == "modified" {
		then = decodeObject(before)
		content.difference = differenceOf(before, after)
	}
	content.Manager, content.Conditions = managerOf(then, now), conditionsChanged(then, now)
	return content
}

// byteCount returns how much memory the change takes, without what the cache has anyway. Compressed contents take about
// a quarter of their JSON. The state after a change is mostly the state before the next change.
func (c *change) byteCount() int {
	return 640 + (c.states.Before.Size+c.states.After.Size)/4
}

// typeOf returns the type of a change in the words of causes.
func typeOf(t cache.ChangeType) string { return strings.ToLower(t.String()) }
