package watch

import (
	"context"
	"errors"
)

var errNoVersion = errors.New("the list has no resourceVersion")

// listPages reads the whole state in pages.
func (f *follower) listPages(ctx context.Context) error {
	version := ""
	for page, err := range f.stream.Pages(ctx, f.handler) {
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := f.put(item); err != nil {
				return err
			}
		}
		version = page.ResourceVersion
	}
	return f.finishList(version)
}

// finishList ends a list that the server has sent, and that is complete at version.
func (f *follower) finishList(version string) error {
	if version == "" {
		return f.watchError(errNoVersion)
	}
	f.version, f.reached = version, version
	return f.endList(version)
}

// endList ends a list that is complete at version, and publishes the deletions of the objects that the
// list has not shown.
func (f *follower) endList(version string) error {
	for gone := range f.tracker.missing {
		if err := f.publishMissing(gone); err != nil {
			return err
		}
	}
	f.listing, f.interrupted = false, false
	f.tracker.advance(version)
	f.backoff.recordList()
	if !f.paged {
		f.endlessLists = 0
	}
	f.synced.markSynced()
	return f.publish(Change{Type: ChangeListed, ResourceVersion: version})
}

// publishMissing publishes a deletion that was not observed itself.
func (f *follower) publishMissing(gone trackedVersion) error {
	return f.publish(Change{
		Type: ChangeDeleted, Key: gone.key, UID: gone.version.UID(), ResourceVersion: gone.version.ResourceVersion(),
	})
}
