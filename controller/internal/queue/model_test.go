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
	// low and high are what is ready, in order.
	low, high []Key
	// rounds has, for each, whether it was High although Low had work.
	rounds        []bool
	adds, retries uint64
}

type modelKey struct {
	running    bool
	backingOff bool
	failures   int
	readyAt    time.Time
	wishes     []modelWish // for the next round
	causes     []Cause     // all, of the next round
}

type modelWish struct {
	at    time.Time
	seq   int // since when it waits
	low   bool
	echo  bool
	cause Cause // to be noted when it is due
}

func remove(keys []Key, key Key) []Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k Key) bool { return k == key })
}

// step brings what is ready up to date.
func (m *model) step() {
	type due struct {
		Key
		modelWish
	}
	var promoted []due
	for key, k := range m.keys {
		if k.running || slices.Contains(m.high, key) {
			continue
		}
		wishes := slices.Clone(k.wishes)
		wishes = slices.DeleteFunc(wishes, func(w modelWish) bool { return w.low || w.at.After(m.now) })
		if len(wishes) > 0 {
			promoted = append(promoted, due{key, slices.MinFunc(wishes, earlier)})
		}
	}
	slices.SortFunc(promoted, func(x, y due) int { return earlier(x.modelWish, y.modelWish) })
	for _, d := range promoted {
		k := m.keys[d.Key]
		if d.cause != (Cause{}) {
			k.causes = append(k.causes, d.cause)
		}
		if !slices.Contains(m.low, d.Key) {
			k.readyAt = d.at
		}
		m.low = remove(m.low, d.Key)
		m.high = append(m.high, d.Key)
		k.backingOff = false
	}
	for key, k := range m.keys {
		lows := slices.ContainsFunc(k.wishes, func(w modelWish) bool { return w.low })
		if lows && !k.running && !slices.Contains(m.high, key) && !slices.Contains(m.low, key) {
			// At most one key gets its first Low wish between two steps.
			m.low = append(m.low, key)
			k.readyAt = m.now
			k.backingOff = false
		}
	}
}

func earlier(x, y modelWish) int {
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
	k.causes = append(k.causes, t.Cause)
	if k.backingOff && t.Echo {
		return
	}
	m.seq++
	w := modelWish{at: t.NotBefore, seq: m.seq, echo: t.Echo}
	if !t.NotBefore.After(m.now) {
		w.at = m.now
		w.low = t.Priority == Low
	}
	k.wishes = append(k.wishes, w)
	m.step()
}

func (m *model) get() (Item, bool) {
	if len(m.high)+len(m.low) == 0 {
		return Item{}, false
	}
	inRow := 0
	for _, passed := range slices.Backward(m.rounds) {
		if !passed {
			break
		}
		inRow++
	}
	var key Key
	if len(m.high) == 0 || len(m.low) > 0 && inRow == 4 {
		key = m.low[0]
		m.rounds = append(m.rounds, false)
	} else {
		key = m.high[0]
		m.rounds = append(m.rounds, len(m.low) > 0)
	}
	m.low, m.high = remove(m.low, key), remove(m.high, key)
	k := m.keys[key]
	item := Item{Key: key, Attempt: k.failures, Waited: m.now.Sub(k.readyAt)}
	for _, cause := range k.causes {
		item.Causes.add(cause)
	}
	k.running, k.wishes, k.causes = true, nil, nil
	return item, true
}

func (m *model) done(key Key, o Outcome) {
	k := m.keys[key]
	if k == nil || !k.running {
		return
	}
	k.running = false
	m.seq++
	own := modelWish{seq: m.seq}
	switch {
	case o.Forget:
		k.failures = 0
	case o.Failed:
		m.retries++
		k.failures++
		k.wishes = slices.DeleteFunc(k.wishes, func(w modelWish) bool { return w.echo })
		k.backingOff = true
		own.at, own.cause = m.now.Add(o.RetryAfter), Cause{Change: "retry"}
		k.wishes = append(k.wishes, own)
	default:
		k.failures = 0
		if o.RequeueAfter > 0 {
			own.at, own.cause = m.now.Add(o.RequeueAfter), Cause{Change: "requeue"}
			k.wishes = append(k.wishes, own)
		}
	}
	for i := range k.wishes {
		// What was asked for during the work begins to wait now. A trigger that is over
		// comes before a retry without a wait: the retry is then not a cause.
		w := &k.wishes[i]
		if w.at.Before(m.now) && w.cause == (Cause{}) {
			w.at = m.now
		}
		w.seq = m.seq
	}
	if len(k.wishes) == 0 {
		delete(m.keys, key)
	}
	m.step()
}

func (m *model) stats() Stats {
	s := Stats{Ready: len(m.low) + len(m.high), Adds: m.adds, Retries: m.retries}
	for _, key := range slices.Concat(m.low, m.high) {
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
	q := New()
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
	// Few keys and round times, so that much happens to each key and much at one time.
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
				Priority: Priority(next(2)),
				Echo:     next(3) == 0,
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
			var o Outcome
			switch next(6) {
			case 0, 1:
				o = Outcome{Failed: true, RetryAfter: time.Duration(next(6)) * time.Second}
			case 2, 3:
				o = Outcome{RequeueAfter: time.Duration(next(6)) * time.Second}
			case 4:
				o = Outcome{Forget: true, Failed: next(2) == 0, RequeueAfter: time.Duration(next(2)) * time.Second}
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

// checkInvariants looks at what the fields of Queue promise.
func checkInvariants(t *testing.T, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	seen := 0
	for _, e := range q.table.buckets {
		for ; e != nil; e = e.chain {
			seen++
			inDelayed := e.index >= 0
			if inDelayed && q.delayed.entries[e.index] != e {
				t.Fatalf("%v: wrong place in delayed", e.key)
			}
			switch e.state {
			case running, readyHigh:
				if inDelayed {
					t.Fatalf("%v: delayed in state %v", e.key, e.state)
				}
			case waiting, backingOff:
				if !inDelayed {
					t.Fatalf("%v: would wait for ever", e.key)
				}
			}
		}
	}
	if seen != q.table.len {
		t.Fatalf("%d entries, counted %d", seen, q.table.len)
	}
	if nearest := q.delayed.nearest(); q.timerAt > nearest {
		t.Fatalf("timer at %d, nearest at %d", q.timerAt, nearest)
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
