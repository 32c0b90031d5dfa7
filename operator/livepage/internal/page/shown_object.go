package page

import (
	"context"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// shownObject is an object of any kind, as far as the page shows it.
type shownObject struct {
	Metadata struct {
		Name              string       `json:"name"`
		Namespace         string       `json:"namespace"`
		Generation        int64        `json:"generation"`
		CreationTimestamp string       `json:"creationTimestamp"`
		DeletionTimestamp string       `json:"deletionTimestamp"`
		Finalizers        []string     `json:"finalizers"`
		ManagedFields     []fieldEntry `json:"managedFields"`
	} `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// fieldEntry is an entry of the managed fields of an object.
type fieldEntry struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource"`
	Time        string `json:"time"`
}

// decodeObject returns an object, as far as it can be decoded.
func decodeObject(body []byte) *shownObject {
	o := new(shownObject)
	_ = kube.Unmarshal(body, o) // conditions of another form are not shown
	return o
}

// hasCondition reports whether a condition has a status.
func (o *shownObject) hasCondition(conditionType, status string) bool {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == conditionType && c.Status == status {
			return true
		}
	}
	return false
}

// hasFieldEntry reports whether the managed fields have an entry.
func (o *shownObject) hasFieldEntry(entry *fieldEntry) bool {
	for i := range o.Metadata.ManagedFields {
		if o.Metadata.ManagedFields[i] == *entry {
			return true
		}
	}
	return false
}

// managerOf returns the field manager that has made after of before: the manager of the newest entry of after that is
// not in before. It returns nothing if no entry is new.
func managerOf(before, after *shownObject) string {
	newest := new(fieldEntry)
	for i := range after.Metadata.ManagedFields {
		entry := &after.Metadata.ManagedFields[i]
		if entry.Time >= newest.Time && !before.hasFieldEntry(entry) {
			newest = entry
		}
	}
	return shortened(newest.Manager, maxValue)
}

// cachedObject returns an object as the cache has it. It returns nil if the cache does not have the object, or if the
// content of the object is not shown.
func cachedObject(ctx context.Context, s *Sources, o objectName) *shownObject {
	streams := s.Streams()
	for i := range streams {
		stream := &streams[i].Stream
		if stream.Resource.Kind != o.Kind || isConfidential(&stream.Resource, "") || stream.Representation != wire.Full {
			continue
		}
		response, err := s.Cached.Do(ctx,
			&wire.Request{Verb: wire.VerbGet, Resource: stream.Resource, Namespace: o.Namespace, Name: o.Name})
		if err == nil {
			return decodeObject(response.Body)
		}
	}
	return nil
}
