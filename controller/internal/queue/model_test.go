package queue

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// model is what the queue should do, with slices, without timers and with everything
// looked through each time.
type model struct {
	now  time.Time
	seq  int
	keys map[Key]*modelKey
	// ready holds what is ready, in order, by class.
	ready [3][]Key
	// picks holds the class of each reconcile, and which classes had work then.
	picks         []modelPick
	adds, retries uint64
}

type modelPick struct {
	class   Priority
	hadWork [3]bool
}

type modelKey struct {
	running             bool
	backingOff          bool
	hasEchoEndedBackoff bool
	failures            int
	readyAt             time.Time
	schedules           []modelSchedule // for the next reconcile
	causes              []Cause         // all, of the next reconcile
}

type modelSchedule struct {
	at    time.Time
	seq   int // since when it waits
	class Priority
	echo  Echo
	// cause is recorded when the schedule is due.
	cause Cause
	// isDelayed is true for a delayed trigger. No reconcile before notBefore answers it.
	isDelayed bool
	notBefore time.Time
}

func remove(keys []Key, key Key) []Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k == key })
}

// classOf returns the class that a ready key is in, or -1.
func (m *model) classOf(key Key) int {
	for c := range m.ready {
		if slices.Contains(m.ready[c], key) {
			return c
		}
	}
	return -1
}

// setReady moves a key up to a class.
func (m *model) setReady(key Key, class Priority, since time.Time) {
	k := m.keys[key]
	if m.classOf(key) < 0 {
		k.readyAt = since
	}
	for c := range m.ready {
		m.ready[c] = remove(m.ready[c], key)
	}
	m.ready[class] = append(m.ready[class], key)
	k.backingOff = false
}

// step brings what is ready up to date.
func (m *model) step() {
	type due struct {
		Key
		modelSchedule
	}
	var promoted []due
	for key, k := range m.keys {
		if k.running {
			continue
		}
		has := func(class Priority) bool {
			return slices.ContainsFunc(k.schedules, func(w modelSchedule) bool { return w.class == class && !w.at.After(m.now) })
		}
		switch {
		case has(High):
			// At most one key gets its first High or Low schedule between two steps.
			if m.classOf(key) < int(High) {
				m.setReady(key, High, m.now)
			}
		case has(Due):
			if m.classOf(key) < int(Due) {
				schedules := slices.DeleteFunc(slices.Clone(k.schedules), func(w modelSchedule) bool { return w.class != Due || w.at.After(m.now) })
				promoted = append(promoted, due{key, slices.MinFunc(schedules, earlier)})
			}
		case has(Low):
			if m.classOf(key) < 0 {
				m.setReady(key, Low, m.now)
			}
		}
	}
	slices.SortFunc(promoted, func(x, y due) int { return earlier(x.modelSchedule, y.modelSchedule) })
	for _, d := range promoted {
		if !d.isDelayed {
			m.keys[d.Key].causes = append(m.keys[d.Key].causes, d.cause)
		}
		m.setReady(d.Key, Due, d.at)
	}
}

func earlier(x, y modelSchedule) int {
	return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.seq, y.seq))
}

func (m *model) wait(d time.Duration) {
	m.now = m.now.Add(d)
	m.step()
}

func (m *model) add(t Trigger) {
	m.adds++
	k := m.keys[t.Key]
	if k == nil {
		k = &modelKey{}
		m.keys[t.Key] = k
	}
	m.seq++
	if t.NotBefore.After(m.now) {
		same := func(w modelSchedule) bool { return w.isDelayed && w.at.Equal(t.NotBefore) }
		if !slices.ContainsFunc(k.schedules, same) {
			k.schedules = append(k.schedules, modelSchedule{at: t.NotBefore, seq: m.seq, class: Due, cause: t.Cause, isDelayed: true, notBefore: t.NotBefore})
		}
		m.step()
		return
	}
	k.causes = append(k.causes, t.Cause)
	if k.backingOff {
		if t.Echo == CertainEcho || t.Priority == Low || t.Echo == PossibleEcho && k.hasEchoEndedBackoff {
			return
		}
		if t.Echo == PossibleEcho {
			k.hasEchoEndedBackoff = true
		}
	}
	k.schedules = append(k.schedules, modelSchedule{at: m.now, seq: m.seq, class: t.Priority, echo: t.Echo})
	m.step()
}

func (m *model) get() (Work, bool) {
	class := -1
	for c := range m.ready {
		if len(m.ready[c]) > 0 {
			class = c
		}
	}
	if class < 0 {
		return Work{}, false
	}
	for c, share := range []int{Low: lowShare, Due: dueShare} {
		// The reconciles of classes above since the last one of the class, while the class had work.
		inRow := 0
		for _, p := range slices.Backward(m.picks) {
			if !p.hadWork[c] || p.class == Priority(c) {
				break
			}
			if p.class > Priority(c) {
				inRow++
			}
		}
		if len(m.ready[c]) > 0 && inRow >= share-1 {
			class = c
			break
		}
	}
	pick := modelPick{class: Priority(class)}
	for c := range m.ready {
		pick.hadWork[c] = len(m.ready[c]) > 0
	}
	m.picks = append(m.picks, pick)
	key := m.ready[class][0]
	m.ready[class] = m.ready[class][1:]
	k := m.keys[key]
	item := Work{Key: key, FailureCount: k.failures, Waited: m.now.Sub(k.readyAt)}
	for _, cause := range k.causes {
		item.Causes.add(cause)
	}
	var later []modelSchedule
	slices.SortStableFunc(k.schedules, func(x, y modelSchedule) int { return x.notBefore.Compare(y.notBefore) })
	for _, w := range k.schedules {
		if w.isDelayed && w.at.After(m.now) {
			later = append(later, w)
		} else if w.isDelayed {
			item.Causes.add(w.cause)
		}
	}
	k.running, k.schedules, k.causes = true, later, nil
	return item, true
}

func (m *model) done(key Key, o Next) {
	k := m.keys[key]
	if k == nil || !k.running {
		return
	}
	k.running = false
	m.seq++
	own := modelSchedule{seq: m.seq, class: Due}
	switch {
	case o.IsRetried:
		m.retries++
		k.failures++
		isFresh := func(w modelSchedule) bool { return w.class == High && w.echo == NotEcho }
		isPossibleEcho := func(w modelSchedule) bool { return w.class == High && w.echo == PossibleEcho }
		if slices.ContainsFunc(k.schedules, isFresh) || k.hasEchoEndedBackoff {
			k.schedules = slices.DeleteFunc(k.schedules, isPossibleEcho)
		} else if slices.ContainsFunc(k.schedules, isPossibleEcho) {
			k.hasEchoEndedBackoff = true
		}
		k.schedules = slices.DeleteFunc(k.schedules, func(w modelSchedule) bool {
			return w.class == Low || w.echo == CertainEcho || w.class != High && w.echo == PossibleEcho
		})
		k.backingOff = true
		own.at, own.cause = m.now.Add(o.RetryAfter), Cause{Change: "retry"}
		k.schedules = append(k.schedules, own)
	default:
		k.failures = 0
		k.hasEchoEndedBackoff = false
		if o.RequeueAfter > 0 {
			own.at, own.cause = m.now.Add(o.RequeueAfter), Cause{Change: "requeue"}
			k.schedules = append(k.schedules, own)
		}
	}
	for i := range k.schedules {
		// What was asked for during the reconcile begins to wait now.
		w := &k.schedules[i]
		if w.at.Before(m.now) {
			w.at = m.now
		}
		w.seq = m.seq
	}
	if len(k.schedules) == 0 {
		delete(m.keys, key)
	}
	m.step()
}

func (m *model) stats() Stats {
	all := slices.Concat(m.ready[:]...)
	s := Stats{Ready: len(all), Adds: m.adds, Retries: m.retries}
	for _, key := range all {
		s.OldestReady = max(s.OldestReady, m.now.Sub(m.keys[key].readyAt))
	}
	for _, k := range m.keys {
		if k.running {
			s.Running++
		}
	}
	s.Waiting = len(m.keys) - s.Ready - s.Running
	return s
}

// drive does what script says to the queue and to the model and compares them after each
// step. It must run in a bubble.
func drive(t *testing.T, script []byte) {
	q := New(nil)
	defer q.Shutdown()
	m := &model{now: time.Now(), keys: map[Key]*modelKey{}}

	next := func(n int) int {
		if len(script) == 0 {
			return 0
		}
		x := int(script[0])
		script = script[1:]
		return x % n
	}
	// Few keys and whole times, so that much happens to each key and much at one time.
	keys := keys(6)
	for range 2 {
		keys = append(keys, Key{Cluster: "west", Name: keys[len(keys)-1].Name + "x"})
	}
	var running []Key
	var log []string
	note := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	fail := func(what string, got, want any) {
		t.Helper()
		for _, line := range log {
			t.Log(line)
		}
		t.Fatalf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}

	for len(script) > 0 {
		switch next(8) {
		case 0, 1, 2:
			trigger := Trigger{
				Key:      keys[next(len(keys))],
				Cause:    Cause{Change: "change", Name: string(rune('a' + next(5)))},
				Priority: []Priority{Low, High}[next(2)],
				Echo:     []Echo{NotEcho, NotEcho, PossibleEcho, CertainEcho}[next(4)],
			}
			if next(3) == 0 {
				trigger.NotBefore = m.now.Add(time.Duration(next(8)-1) * time.Second)
				if next(2) == 0 {
					trigger.NotBefore = trigger.NotBefore.Round(0)
				}
			}
			note("%v add %+v", m.now.Format(time.TimeOnly), trigger)
			m.add(trigger)
			q.Add(trigger)
		case 3, 4:
			want, ok := m.get()
			note("%v get: %v %+v", m.now.Format(time.TimeOnly), ok, want)
			ctx, cancel := context.WithCancel(t.Context())
			if !ok {
				// It must block, without the help of the clock.
				go func() {
					synctest.Wait()
					cancel()
				}()
			}
			item, gotOK := q.Get(ctx)
			cancel()
			if ok != gotOK || fmt.Sprintf("%+v", item) != fmt.Sprintf("%+v", want) {
				fail("get", item, want)
			}
			if ok {
				running = append(running, item.Key)
			}
		case 5, 6:
			key := keys[next(len(keys))]
			if len(running) > 0 {
				key = running[next(len(running))]
				running = remove(running, key)
			}
			var o Next
			switch next(6) {
			case 0, 1:
				o = Next{IsRetried: true, RetryAfter: time.Duration(next(6)) * time.Second}
			case 2, 3:
				o = Next{RequeueAfter: time.Duration(next(6)) * time.Second}
			}
			note("%v done %v %+v", m.now.Format(time.TimeOnly), key, o)
			m.done(key, o)
			q.Done(key, o)
		default:
			d := time.Duration(1+next(4)) * time.Second
			m.wait(d)
			time.Sleep(d)
			synctest.Wait()
		}
		if got, want := q.Stats(), m.stats(); got != want {
			fail("stats", got, want)
		}
		checkInvariants(t, q)
	}
}

// checkInvariants looks at what the fields of Queue and of its entries promise.
func checkInvariants(t *testing.T, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	seen, runningCount, readyCount := 0, 0, 0
	for _, e := range q.table.buckets {
		for ; e != nil; e = e.chain {
			seen++
			switch e.state {
			case running:
				runningCount++
			case ready:
				readyCount++
			}
			if broken := brokenInvariant(q, e); broken != "" {
				t.Fatalf("%v: the invariant of %s is broken: %+v", e.key, broken, *e)
			}
		}
	}
	if seen != q.table.len || runningCount != q.runningCount || readyCount != q.ready.len() {
		t.Fatalf("%d entries, %d running and %d ready, counted %d, %d and %d", seen, runningCount, readyCount,
			q.table.len, q.runningCount, q.ready.len())
	}
	if nearest := q.dueHeap.nearest(); q.timerAt > nearest {
		t.Fatalf("timer at %d, nearest at %d", q.timerAt, nearest)
	}
}

// brokenInvariant returns the field of an entry whose invariant is broken, or nothing.
func brokenInvariant(q *Queue, e *entry) string {
	s, now := e.schedule, instant(q.clock.Since(q.start))
	isRunning, isReady, isWaiting := e.state == running, e.state == ready, e.state == waiting || e.state == backingOff
	isInHeap := isWaiting || isReady && e.class == Low && s.due < never
	areDelayedSorted := slices.IsSortedFunc(e.delayedTriggers, func(a, b delayedTrigger) int {
		return cmp.Or(cmp.Compare(a.due, b.due), -1) // equal times are not sorted
	})
	switch {
	case *q.table.find(&e.key) != e:
		return "key"
	case isInHeap != (e.index >= 0), isInHeap && q.dueHeap.entries[e.index] != e:
		return "index"
	case isWaiting && (s.high || s.low || s.due == never), isRunning && s.due != never,
		isReady && (s.high != (e.class == High) || e.class == Due && s.due > now || e.class == Low && !s.low):
		return "schedule"
	case !isRunning && !e.afterEcho.isEmpty():
		return "afterEcho"
	case !isRunning && !e.afterPossibleEcho.isEmpty():
		return "afterPossibleEcho"
	case e.hasEchoEndedBackoff && e.failureCount == 0:
		return "hasEchoEndedBackoff"
	case e.hasWrittenStatus && !isRunning:
		return "hasWrittenStatus"
	case len(e.delayedTriggers) > maxDelayedTriggers, !areDelayedSorted,
		!isRunning && len(e.delayedTriggers) > 0 && s.due > e.delayedTriggers[0].due:
		return "delayedTriggers"
	case !isReady && (e.prev != nil || e.next != nil):
		return "prev or next"
	case e.state == backingOff && e.failureCount == 0:
		return "failureCount"
	default:
		return ""
	}
}

func TestModel(t *testing.T) {
	seeds := 2000
	if testing.Short() {
		seeds = 200
	}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			drive(t, script(seed))
		})
		if t.Failed() {
			return
		}
	}
}

func script(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	script := make([]byte, 100+r.IntN(1000))
	for i := range script {
		script[i] = byte(r.Uint32())
	}
	return script
}

func FuzzModel(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(script(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 2000 {
			script = script[:2000]
		}
		synctest.Test(t, func(t *testing.T) { drive(t, script) })
	})
}
