package controller

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// shownObjects are the objects of the reconciled kind, as the controller's own streams show them. [subscriptions]
// implements it.
type shownObjects interface {
	keys() iter.Seq[kube.Key]
	covers(k kube.Key) bool
	stored(k kube.Key) (cache.Object, bool)
	// confirmTerm returns whether the store of an object shows all writes of former leaders to the object.
	confirmTerm(ctx context.Context, k kube.Key) bool
	// isSynced reports whether the streams that can show an object of a key have shown all objects that existed at their
	// start.
	isSynced(k kube.Key) bool
	// isKindUnserved reports whether the streams of a cluster have found that the server does not serve the kind.
	isKindUnserved(cluster string) bool
}

// subscriptions holds the subscriptions of a controller: one for each stream of each watched kind.
type subscriptions struct {
	// all holds the subscriptions of all kinds. ofReconciledKind holds the subscriptions of the reconciled kind, which are
	// the first ones in all. They are opened in this order, because relations read the stores of the reconciled kind.
	all, ofReconciledKind []*subscription
}

// newSubscriptions returns the subscriptions of the reconciled kind and the other kinds. open opens them.
func newSubscriptions(reconciled *watchedKind, others []*watchedKind, rt *Runtime) (*subscriptions, error) {
	s := new(subscriptions)
	for i, w := range append([]*watchedKind{reconciled}, others...) {
		c, err := w.client(rt)
		if err != nil {
			return nil, err
		}
		streams, err := w.streams(c)
		if err != nil {
			return nil, err
		}
		kindSynced := &milestone{reached: make(chan struct{})}
		for _, stream := range streams {
			if stream.Resource.IsSecret() && !w.keepSecrets {
				stream.Representation = wire.MetadataOnly
			}
			stream.IfServed = w.ifServed
			s.all = append(s.all, &subscription{
				watched: w, isOfReconciledKind: i == 0, stream: stream, synced: make(chan struct{}), settled: make(chan struct{}),
				kindSynced: kindSynced,
			})
		}
		if i == 0 {
			s.ofReconciledKind = slices.Clip(s.all)
		}
	}
	return s, nil
}

// open opens all subscriptions, and passes their changes to handle. The first subscriptions publish changes while
// the others are not open yet.
func (s *subscriptions) open(ctx context.Context, c *cache.Cache, handle func(*subscription, cache.Change)) error {
	// A call that is running when ctx ends still reads from the stores.
	ctx = context.WithoutCancel(ctx)
	for _, sub := range s.all {
		if d := sub.watched.kind.Definition; d != nil && !d.Foreign {
			c.RecordDefinition(sub.stream.Resource.Group)
		}
		opened, err := c.Open(ctx, sub.stream, func(change cache.Change) { handle(sub, change) })
		if err != nil {
			return fmt.Errorf("follow %s: %w", sub.stream, err)
		}
		sub.opened.Store(opened)
		if err := sub.index(); err != nil {
			return err
		}
	}
	return nil
}

// view returns the cache as the controller may see it. All subscriptions must be open.
func (s *subscriptions) view(c *cache.Cache) *cache.View {
	opened := make([]*cache.Subscription, len(s.all))
	for i, sub := range s.all {
		opened[i] = sub.cacheSubscription()
	}
	return c.View(opened...)
}

// close closes the subscriptions that are open.
func (s *subscriptions) close() {
	for _, sub := range s.all {
		if opened := sub.cacheSubscription(); opened != nil {
			opened.Close()
		}
	}
}

// waitSynced waits until all streams are synced, apart from those of namespaces that cannot be listed. It returns false
// if ctx ends first. At least one stream of each watched kind must be synced. So a missing permission for a kind holds
// the controller back, and a namespace that was deleted with its Role does not.
//
// For example, a controller of webapps watches the namespaces shop and lab, and may not list webapps in lab. It starts
// once the stream of shop is synced. Reads in lab go to the server until the stream of lab is synced.
func (s *subscriptions) waitSynced(ctx context.Context) bool {
	for _, sub := range s.all {
		for _, known := range []<-chan struct{}{sub.settled, sub.kindSynced.reached} {
			select {
			case <-known:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

// doubtWait returns how long reconciles of low priority wait at most for the lists of the stores in doubt: for each
// store until maxDoubtWait after its doubt began. It returns 0 if no store is awaited. A stream that is not synced is
// not awaited, because no read uses its store.
//
// Example: the store of WebApps is in doubt since 10:00:00, and the store of Deployments since 10:02:00. doubtWait
// returns 4 minutes at 10:03:00, and 0 from 10:07:00 on.
func (s *subscriptions) doubtWait() (wait time.Duration) {
	for _, sub := range s.all {
		if since, isDoubted := sub.cacheSubscription().DoubtedSince(); isDoubted && sub.isSynced() {
			wait = max(wait, maxDoubtWait-time.Since(since))
		}
	}
	return wait
}

// doubtedStreams returns the synced streams whose stores are in doubt.
func (s *subscriptions) doubtedStreams() (doubted []string) {
	for _, sub := range s.all {
		if _, isDoubted := sub.cacheSubscription().DoubtedSince(); isDoubted && sub.isSynced() {
			doubted = append(doubted, sub.stream.String())
		}
	}
	return doubted
}

// keys returns the keys of all objects of the reconciled kind.
func (s *subscriptions) keys() iter.Seq[kube.Key] {
	return func(yield func(kube.Key) bool) {
		for _, sub := range s.ofReconciledKind {
			for o := range sub.store().All(cache.Filter{}) {
				if !yield(sub.keyOf(o.Record)) {
					return
				}
			}
		}
	}
}

// covers reports whether the streams of the reconciled kind can show an object of that key. A
// program that is narrowed to some namespaces must not ask for objects in others, whatever a
// map function returns.
func (s *subscriptions) covers(k kube.Key) bool {
	return k.Name != "" && slices.ContainsFunc(s.ofReconciledKind, func(sub *subscription) bool { return sub.covers(k) })
}

// stored returns an object of the reconciled kind as its own stream shows it.
func (s *subscriptions) stored(k kube.Key) (cache.Object, bool) {
	for _, sub := range s.ofReconciledKind {
		if opened := sub.cacheSubscription(); opened != nil && sub.covers(k) {
			return opened.Store().Get(k)
		}
	}
	return cache.Object{}, false
}

// confirmTerm returns whether the store of an object of the reconciled kind shows all writes of former leaders to the
// object: see [cache.Subscription.ConfirmTerm].
func (s *subscriptions) confirmTerm(ctx context.Context, k kube.Key) bool {
	return !slices.ContainsFunc(s.ofReconciledKind, func(sub *subscription) bool {
		opened := sub.cacheSubscription()
		return opened != nil && sub.covers(k) && !opened.ConfirmTerm(ctx, k)
	})
}

// isAnyStreamBehindTerm reports whether a stream of a watched kind may lack writes of a former leader.
func (s *subscriptions) isAnyStreamBehindTerm() bool {
	return slices.ContainsFunc(s.all, func(sub *subscription) bool {
		opened := sub.cacheSubscription()
		return opened != nil && opened.IsBehindTerm()
	})
}

// isSynced reports whether the streams of the reconciled kind that can show an object of a key have shown all objects
// that existed at their start.
func (s *subscriptions) isSynced(k kube.Key) bool {
	return !slices.ContainsFunc(s.ofReconciledKind,
		func(sub *subscription) bool { return sub.covers(k) && !sub.isSynced() })
}

// isWholeKindShown reports whether a stream shows all objects of the reconciled kind in a cluster.
func (s *subscriptions) isWholeKindShown(cluster string) bool {
	return slices.ContainsFunc(s.ofReconciledKind, func(sub *subscription) bool {
		stream := sub.stream
		return stream.Cluster == cluster && stream.Namespace == "" && stream.LabelSelector == "" &&
			stream.FieldSelector == "" && stream.ShardSelector == ""
	})
}

// isKindUnserved reports whether the streams of a cluster have found that the server does not serve the
// reconciled kind.
func (s *subscriptions) isKindUnserved(cluster string) bool {
	return slices.ContainsFunc(s.ofReconciledKind, func(sub *subscription) bool {
		return sub.stream.Cluster == cluster && sub.store().IsUnserved()
	})
}

// referrers returns the objects of the reconciled kind that have a value in x.
func (s *subscriptions) referrers(x *kube.Index, cluster, namespace, value string) (keys []relation.Key) {
	for _, sub := range s.ofReconciledKind {
		if sub.stream.Cluster != cluster {
			continue
		}
		for o := range sub.store().All(cache.Filter{Namespace: namespace, Index: x, Value: value}) {
			keys = append(keys, relation.Key{Key: sub.keyOf(o.Record)})
		}
	}
	return keys
}

// NewestShown returns the newest version of an object that the streams have shown.
func (s *subscriptions) NewestShown(t echo.Target) (newest echo.Version) {
	if t.IsCollection() {
		return echo.Version{}
	}
	for _, sub := range s.all {
		if !t.IsOf(sub.stream.Cluster, sub.stream.Resource) {
			continue
		}
		o, isShown := sub.store().Get(t.KeyWithoutCluster())
		if isShown && (newest.UID == "" || ident.IsNewer(o.ResourceVersion, newest.ResourceVersion)) {
			newest = echo.Version{UID: o.UID, ResourceVersion: o.ResourceVersion}
		}
	}
	return newest
}

// CollectionObjects returns the objects of a collection that the streams show. The value is true for an object that the
// selector selects.
func (s *subscriptions) CollectionObjects(collection echo.Target, selector labels.Selector) map[types.UID]bool {
	shown := make(map[types.UID]bool)
	for _, sub := range s.all {
		if !collection.IsOf(sub.stream.Cluster, sub.stream.Resource) {
			continue
		}
		for o := range sub.store().All(cache.Filter{Namespace: collection.KeyWithoutCluster().Namespace}) {
			shown[o.UID] = shown[o.UID] || selector.Matches(o.Labels)
		}
	}
	return shown
}

// coversRead reports whether a stream shows what r reads.
func (s *subscriptions) coversRead(r *wire.Request) bool {
	if r.Verb == wire.VerbWatch || r.Subresource != "" || r.Live {
		return false
	}
	for _, sub := range s.all {
		switch {
		case !sub.coversApartFromSelectors(r):
		case cache.SelectsWithin(r, sub.stream):
			return true
		case r.Verb == wire.VerbGet:
			if _, ok := sub.store().Get(kube.Key{Namespace: r.Namespace, Name: r.Name}); ok {
				return true
			}
		}
	}
	return false
}

// subscription is one stream of a watched kind.
type subscription struct {
	watched *watchedKind
	// isOfReconciledKind is true for a stream of the reconciled kind.
	isOfReconciledKind bool
	stream             wire.Stream
	// synced is closed once the subscription has received all objects. settled is closed then too, or before if the
	// objects may not be listed for long: see [cache.Unlisted]. The goroutine of the stream closes both.
	synced, settled chan struct{}
	// kindSynced is shared by the subscriptions of a watched kind. It is reached with the first of them that is synced.
	kindSynced *milestone
	// opened is the subscription of the cache. It is nil until [subscriptions.open] has opened the stream. The stream
	// may publish changes to the controller before.
	opened atomic.Pointer[cache.Subscription]

	// throttleMu guards throttle, which limits the log lines about errors of predicates and relations.
	throttleMu sync.Mutex
	throttle   logThrottle
}

// cacheSubscription returns the subscription of the cache, or nil before the stream is open.
func (s *subscription) cacheSubscription() *cache.Subscription { return s.opened.Load() }

// store returns the store of the stream, which must be open.
func (s *subscription) store() *cache.Store { return s.cacheSubscription().Store() }

// isSynced reports whether the subscription has received all objects.
func (s *subscription) isSynced() bool { return isClosed(s.synced) }

// recordSynced records that the subscription has received all objects.
func (s *subscription) recordSynced() {
	close(s.synced)
	s.settle()
	s.kindSynced.reach()
}

// settle records that nobody needs to wait for the subscription any more.
func (s *subscription) settle() {
	if !isClosed(s.settled) {
		close(s.settled)
	}
}

// isClosed reports whether c is closed. Nothing is sent to c.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// milestone is a moment that several goroutines may reach, and that counts once.
type milestone struct {
	once    sync.Once
	reached chan struct{}
}

// reach closes reached, unless it is closed.
func (m *milestone) reach() { m.once.Do(func() { close(m.reached) }) }

// index adds the indexes of the watched kind to the store.
func (s *subscription) index() error {
	store := s.store()
	for _, key := range s.watched.labelIndexes {
		store.IndexLabel(key)
	}
	for _, x := range s.watched.indexes {
		if err := store.Index(x); err != nil {
			return err
		}
	}
	return nil
}

// contains reports whether the stream selects an object. Then the stream shows the next change
// of the object, whatever it is.
func (s *subscription) contains(r cache.Record) bool {
	o, ok := s.store().Get(r.Key())
	return ok && o.UID == r.UID
}

// covers reports whether the stream can show an object of that key.
func (s *subscription) covers(k kube.Key) bool {
	switch {
	case k.Cluster != s.stream.Cluster:
		return false
	case s.stream.Namespace != "":
		return k.Namespace == s.stream.Namespace
	default:
		return k.Namespace != "" || s.stream.Resource.ClusterScoped
	}
}

// coversApartFromSelectors reports whether the stream would show what r reads if it had no selectors.
func (s *subscription) coversApartFromSelectors(r *wire.Request) bool {
	stream := s.stream
	return stream.Cluster == r.Cluster && stream.Resource == r.Resource &&
		(stream.Representation == wire.Full || stream.Representation == r.Representation) &&
		(stream.Namespace == "" || stream.Namespace == r.Namespace)
}

// keyOf returns the key of an object of the stream.
func (s *subscription) keyOf(r cache.Record) kube.Key {
	return kube.Key{Cluster: s.stream.Cluster, Namespace: r.Namespace, Name: r.Name}
}

// relatedKeys returns the objects that one state of an object of the stream concerns.
func (s *subscription) relatedKeys(
	ctx context.Context, r cache.Record, content func() ([]byte, error), reconciled relation.ReconciledKind,
) ([]relation.Key, error) {
	return s.watched.relation.Keys(ctx, relation.Object{Cluster: s.stream.Cluster, Record: r, Content: content},
		reconciled)
}

// logError logs an error of the search for the objects that r concerns. A fault of a function concerns
// thousands of objects, so repetitions are throttled.
func (s *subscription) logError(log *slog.Logger, r cache.Record, err error) {
	s.throttleMu.Lock()
	times := s.throttle.record(err.Error())
	s.throttleMu.Unlock()
	if !shouldLog(times) {
		return
	}
	attributes := []slog.Attr{
		slog.String("kind", s.watched.kind.Resource.Kind), slog.String("namespace", r.Namespace), slog.String("name", r.Name),
		slog.Any("error", err),
	}
	if times > 1 {
		attributes = append(attributes, slog.Int("times", times))
	}
	log.LogAttrs(context.Background(), slog.LevelError, "the objects that a change concerns are not known",
		append(attributes, panicAttrs(err, times == 1)...)...)
}
