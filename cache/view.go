package cache

import (
	"errors"

	"github.com/yare-go/yare/kube"
)

// View is the cache as one controller may see it. It is safe for concurrent use.
type View struct {
	cache *Cache
	// own are the subscriptions whose changes trigger the controller.
	own []*Subscription
}

// View returns the cache as a controller may see it that own triggers.
func (c *Cache) View(own ...*Subscription) *View { return &View{cache: c, own: own} }

// Live is the state of one object, as far as it is certain without a request.
type Live struct {
	// Known reports whether the state is certain. If it is not, nothing else is set.
	Known bool
	// Present reports whether the object exists. If it does not, nothing below is set.
	Present bool
	Record  Record
	// Representation is the form of the bytes: the whole object, or its metadata only.
	Representation kube.Representation

	found finding
}

var errNotPresent = errors.New("the cache shows no such object")

// Bytes returns a copy of the JSON of the object, in the form that Representation names.
// Each call decompresses it. Error: the object is not present.
func (l *Live) Bytes() ([]byte, error) {
	if !l.Present {
		return nil, errNotPresent
	}
	object, err := l.found.bytes()
	if err != nil || l.Representation == kube.Full {
		return object, err
	}
	return metadataOf(object)
}

// Metadata returns the metadata of the object as the JSON of a PartialObjectMetadata.
// Error: the object is not present.
func (l *Live) Metadata() ([]byte, error) {
	if !l.Present {
		return nil, errNotPresent
	}
	object, err := l.found.bytes()
	if err != nil {
		return nil, err
	}
	return metadataOf(object)
}

// Live returns the object that ref names, its UID apart, as it certainly is: as a synced
// store and the answers to this program's own writes show it. The whole object precedes
// its metadata. The state is not known if no store shows the object, or if a write has
// left it in doubt. Live makes no request.
func (v *View) Live(ref kube.Ref) Live {
	for _, form := range []kube.Representation{kube.Full, kube.MetadataOnly} {
		if live := v.live(ref, form); live.Known {
			return live
		}
	}
	return Live{}
}

func (v *View) live(ref kube.Ref, form kube.Representation) Live {
	k := keyOf(ref)
	store, partial := v.cache.showing(k, ref.Resource, form)
	if store == nil {
		return Live{}
	}
	for _, d := range v.cache.overlay.doubted(scope{k.cluster, k.group, k.plural, k.namespace}) {
		if d.version == "" || !reached(store.Version(), d.version) {
			return Live{}
		}
	}
	f := v.cache.look(store, k, ref.Resource, form)
	if !f.sure || !f.present && partial {
		return Live{}
	}
	if f.written != nil {
		var err error
		if f.record, err = recordOf(f.written); err != nil {
			return Live{}
		}
	}
	return Live{Known: true, Present: f.present, Record: f.record, Representation: form, found: f}
}
