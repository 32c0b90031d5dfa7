package cache

import (
	"github.com/yare-go/yare/internal/cache/internal/database"
	"github.com/yare-go/yare/internal/cache/internal/samples"
)

var webApps, pods, secrets = samples.WebApps(), samples.Pods(), samples.Secrets()

// readRecord returns the record of an object, which is JSON.
func readRecord(object string) (Record, error) {
	e, err := database.PackMetadata([]byte(object))
	if err != nil {
		return Record{}, err
	}
	return recordOf(e), nil
}
