package restoration

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Restorations counts the restorations that the streams of a program have found. All methods can be used
// concurrently. The zero value has no streams.
type Restorations struct {
	count atomic.Uint64

	mu sync.Mutex
	// detectors holds a Detector for each open stream.
	detectors []*Detector
}

// Open adds a stream. The Detector and the Recorder call relist to ask for a fresh list of the stream. It
// must not block, and must not use the Restorations.
func (r *Restorations) Open(s kube.Stream, relist func()) (*Detector, *Recorder) {
	d := &Detector{cluster: s.Cluster, selector: selectorOf(s), relist: relist, total: &r.count}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detectors = append(r.detectors, d)
	return d, &Recorder{detector: d, restorations: r}
}

// Close removes the stream of d.
func (r *Restorations) Close(d *Detector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detectors = slices.DeleteFunc(r.detectors, func(other *Detector) bool { return other == d })
}

// record records that the stream of found has listed the state of a restored server. The server has kept
// everything up to version. record counts the restoration, unless another stream has found it before. A store
// of the cluster that is newer than version stays in doubt until it is listed. Its list is asked for, because
// its own watch may never show that anything was lost.
func (r *Restorations) record(found *Detector, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.count.Load()
	if found.count.Load() == count {
		count++
		r.count.Store(count)
		for _, d := range r.detectors {
			switch isAffected := d.cluster == found.cluster; {
			case isAffected && ident.IsNewer(d.expected.forget(), version):
				if d != found {
					d.relist()
				}
			default:
				d.count.Store(count)
			}
		}
	}
	found.count.Store(count)
}
