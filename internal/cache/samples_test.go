package cache

import (
	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/internal/cache/internal/store"
)

var webApps, pods, secrets = samples.WebApps(), samples.Pods(), samples.Secrets()

// readRecord returns the record of an object, which is JSON.
func readRecord(object string) (Record, error) {
	e, err := store.MetadataOf([]byte(object))
	if err != nil {
		return Record{}, err
	}
	return recordOf(e), nil
}
