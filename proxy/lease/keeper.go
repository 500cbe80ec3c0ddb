package lease

import (
	"container/heap"
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock"
)

const (
	maxAsking    = 64 // questions to the masters at the same time
	busyPause    = time.Millisecond * 5
	maxLeases    = 50_000  // of a process
	maxOfHolder  = 1_000   // of a connection
	maxLeaseSize = 1 << 10 // the bytes of a key and its value
)

// Locker puts questions to the masters. redlock.Locker is the one in service.
type Locker interface {
	Renew(ctx context.Context, r redlock.RenewRequest) redlock.Outcome
	Release(ctx context.Context, r redlock.ReleaseRequest) redlock.Outcome
}

// Config is the parts of a Keeper. Many goroutines call the functions, which must not
// block.
type Config struct {
	Locker Locker
	Rule   func(db int, key []byte) Rule // of a key, by the current lock rules
	Limits func() Limits                 // the current ones
	Log    *slog.Logger
}

// A Keeper has the leases of a process. Any goroutine may use it. The caller must Close it.
// The methods about commands' outcomes do nothing on a nil Keeper.
type Keeper struct {
	Config
	counters
	held atomic.Int64 // the number of leases

	start  sync.Once // of the goroutine that gives leases their turns
	mu     sync.Mutex
	leases map[place]*lease // those of open connections; one for each key
	queue  queue            // all leases, by the time of their next turn
	closed bool             // nothing begins any more but releases
	crowd  int              // how many questions have found no room in the present step

	wake    chan struct{}
	ctx     context.Context // ends when Close waits no longer
	end     context.CancelFunc
	stopped chan struct{} // closed by Close
	asking  chan struct{} // has an element for each question under way
	working sync.WaitGroup
}

// place is where a lock is.
type place struct {
	db  int
	key string
}

// A lease is one lock of one connection. The Keeper's mutex guards it.
type lease struct {
	place
	value     string // of a string, or the field of a hash that names the holder
	hash      bool
	holder    *Holder
	term      term
	releasing bool      // its connection has ended, and so must the lock
	until     time.Time // when a lock that is released has ended anyway; zero: never
	at        time.Time
	index     int // in the queue; -1: it is over
}

// New makes a Keeper without leases.
func New(c Config) *Keeper {
	k := &Keeper{
		Config: c, leases: map[place]*lease{},
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), asking: make(chan struct{}, maxAsking),
	}
	k.ctx, k.end = context.WithCancel(context.Background())
	return k
}

// Any tells whether there are leases.
func (k *Keeper) Any() bool { return k != nil && k.held.Load() > 0 }

// add makes a lease, in the place of an earlier one. The caller holds the mutex.
func (k *Keeper) add(l *lease) {
	k.leases[l.place] = l
	l.holder.leases[l] = struct{}{}
	heap.Push(&k.queue, l)
	k.held.Add(1)
	k.schedule(l, time.Now())
	k.start.Do(func() { k.working.Go(k.run) })
}

// remove ends a lease. The caller holds the mutex.
func (k *Keeper) remove(l *lease) {
	if l.index < 0 {
		return
	}
	if k.leases[l.place] == l {
		delete(k.leases, l.place)
	}
	delete(l.holder.leases, l)
	heap.Remove(&k.queue, l.index)
	k.held.Add(-1)
}

// schedule gives a lease its next turn. The caller holds the mutex.
func (k *Keeper) schedule(l *lease, now time.Time) {
	_, in := k.next(l, now)
	k.wakeAt(l, now.Add(in))
}

// wakeAt is turnAt, and wakes the Keeper's goroutine if this turn is now the next one.
func (k *Keeper) wakeAt(l *lease, at time.Time) {
	k.turnAt(l, at)
	if l.index == 0 {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// run gives each lease its turns until Close.
func (k *Keeper) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.stopped:
			return
		}
		pause, lost := k.step(time.Now())
		for _, h := range lost {
			k.lost.Add(1)
			h.lost()
		}
		timer.Reset(pause)
	}
}

// step gives their turns to all leases that are due. It returns the time until the next
// one, and the holders that have lost a lock.
func (k *Keeper) step(now time.Time) (pause time.Duration, lost []*Holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.crowd = 0
	for len(k.queue) > 0 && !k.queue[0].at.After(now) {
		l := k.queue[0]
		if h := k.turn(l, now); h != nil {
			lost = append(lost, h)
		}
	}
	if len(k.queue) == 0 {
		return time.Hour, lost
	}
	return k.queue[0].at.Sub(now), lost
}

// turn does what is due for a lease. It returns the holder if that has lost the lock, the
// first time. The caller holds the mutex.
func (k *Keeper) turn(l *lease, now time.Time) *Holder {
	if l.releasing {
		if k.mayAsk() {
			k.remove(l)
			k.working.Go(func() { k.release(l) })
			return nil
		}
		k.turnAt(l, now.Add(k.busy()))
		return nil
	}
	switch act, in := k.next(l, now); act {
	case forget:
		k.remove(l)
	case lose:
		k.remove(l)
		return l.holder.loses()
	case wait:
		k.turnAt(l, now.Add(in))
	case renew:
		if !k.mayAsk() {
			k.turnAt(l, now.Add(k.busy()))
			return nil
		}
		l.term.pending, l.term.doubted = true, false
		_, in = k.next(l, now)
		k.turnAt(l, now.Add(in))
		k.working.Go(func() { k.renew(l) })
	}
	return nil
}

// busy is how long a lease waits whose question finds no room. Locks that were taken at one moment are due at
// one moment. As many of them come back together as there is room for, so all of them get their turn in
// time, and none asks in vain again and again. The caller holds the mutex.
func (k *Keeper) busy() time.Duration {
	group := k.crowd / maxAsking
	k.crowd++
	return busyPause * time.Duration(1+group)
}

// next is the term's decision by the current rule. The caller holds the mutex.
func (k *Keeper) next(l *lease, now time.Time) (step, time.Duration) {
	return l.term.next(now, k.Rule(l.db, []byte(l.key)), k.Limits())
}

// turnAt sets a lease's next turn. The caller holds the mutex.
func (k *Keeper) turnAt(l *lease, at time.Time) {
	l.at = at
	heap.Fix(&k.queue, l.index)
}

// mayAsk tells whether one more question may be put to the masters, and counts it.
func (k *Keeper) mayAsk() bool {
	select {
	case k.asking <- struct{}{}:
		return true
	default:
		return false
	}
}

// renew puts one renewal to the masters, by the TTL that the lock has now.
func (k *Keeper) renew(l *lease) {
	defer func() { <-k.asking }()
	k.mu.Lock()
	ttl := l.term.ttl
	l.term.pending = ttl > 0
	k.mu.Unlock()
	if ttl == 0 { // it was made permanent
		return
	}
	o := k.ask(func() redlock.Outcome {
		return k.Locker.Renew(k.ctx, redlock.RenewRequest{DB: l.db, Key: []byte(l.key), Holder: []byte(l.value), Hash: l.hash, TTL: ttl})
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.index < 0 || l.releasing {
		return
	}
	now := time.Now()
	late := elapsed(l.term.since, now) >= k.Limits().validity(l.term.ttl)
	found := l.term.answered(o, ttl, now)
	k.renewals[found].Add(1)
	if found == ended && !late {
		k.remove(l)
		return
	}
	k.schedule(l, now) // if it ended late, the client may not know that
}

// release deletes a lock whose connection has ended. Masters that are away get it later.
func (k *Keeper) release(l *lease) {
	defer func() { <-k.asking }()
	o := k.ask(func() redlock.Outcome {
		return k.Locker.Release(k.ctx, redlock.ReleaseRequest{DB: l.db, Key: []byte(l.key), Value: []byte(l.value), Until: l.until})
	})
	switch o.Verdict {
	case redlock.Won:
		k.releases[releaseDone].Add(1)
	case redlock.Lost:
		k.releases[releaseAbsent].Add(1)
	default:
		k.releases[releaseUndecided].Add(1)
	}
}

// ask contains a panic. A question that panicked has no answer.
func (k *Keeper) ask(question func() redlock.Outcome) (o redlock.Outcome) {
	o.Verdict = redlock.NoQuorum
	defer func() {
		if reason := recover(); reason != nil {
			k.Log.Error("panic while a lock was renewed or released (please report)", "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	return question()
}

// Close stops all renewals, and waits for the answers of the masters that were asked. It
// sends the releases of connections that have ended, until ctx ends. It may be called
// again.
func (k *Keeper) Close(ctx context.Context) {
	defer context.AfterFunc(ctx, k.end)()
	k.mu.Lock()
	first := !k.closed
	k.closed = true
	var releases []*lease
	for _, l := range k.queue {
		if l.releasing {
			releases = append(releases, l)
		}
	}
	for len(k.queue) > 0 {
		k.remove(k.queue[len(k.queue)-1])
	}
	k.mu.Unlock()
	if first {
		close(k.stopped)
	}
	for _, l := range releases {
		if ctx.Err() != nil {
			break
		}
		k.asking <- struct{}{}
		k.working.Go(func() { k.release(l) })
	}
	k.working.Wait()
	k.end()
}
