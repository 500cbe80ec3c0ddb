package queue

import (
	"context"
	"slices"
	"time"
)

// A place is that of one acquire in the line of each of its keys. One goroutine owns it.
type place struct {
	queue *Queue
	db    int
	wake  chan struct{}

	// Guarded by the queue's mutex. names, keys and lines have one of each for each key.
	names  []string
	keys   []*key
	lines  []*line
	founds bool // it was the first in all of its lines from the start
	looks  bool // it may make a try out of its turn
	tried  bool
	trying bool
	last   bool // it made the try at the end of its time
}

// A call says what the owner of a place does next.
type call uint8

const (
	callTry  call = iota // make a try, and settle it
	callOver             // the time is over, or nobody may wait any longer
	callGone             // the context has ended
)

// isReady tells whether it is the place's turn. If so, a try has begun.
func (p *place) isReady() bool {
	tracks, at := p.step(time.Now())
	return !tracks && at.IsZero()
}

// await waits for the turn of the place, at most until a time. Then the head of a line is
// called to a last try, and the next await returns callOver.
func (p *place) await(ctx context.Context, until time.Time) call {
	for {
		now := time.Now()
		switch {
		case ctx.Err() != nil:
			return callGone
		case p.last:
			return callOver
		}
		tracks, at := p.step(now)
		switch {
		case tracks:
			p.track(ctx, until)
			continue
		case at.IsZero():
			return callTry
		case !now.Before(until):
			return p.end()
		}
		if until.Before(at) {
			at = until
		}
		alarm := time.NewTimer(at.Sub(now))
		select {
		case <-p.wake:
		case <-alarm.C:
		case <-ctx.Done():
		case <-p.queue.closing:
			alarm.Stop()
			return callOver
		}
		alarm.Stop()
	}
}

// never is when a place tries that is not the first in all of its lines.
var never = time.Unix(1<<40, 0)

// step returns the time of the place's next try. If it is zero, the try has begun. tracks tells that
// changes of its keys must be tracked first.
func (p *place) step(now time.Time) (tracks bool, at time.Time) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	switch {
	case !p.isFirst():
		if !p.looks || slices.ContainsFunc(p.lines, (*line).handsOver) {
			return false, never
		}
		p.begin()
		return false, time.Time{}
	case (p.tried || !p.founds) && p.isUninformed():
		return true, now
	}
	at = never
	for _, l := range p.lines {
		at = earliest(at, l.due, l.net)
	}
	if at.After(now) && !p.looks {
		return false, at
	}
	p.begin()
	return false, time.Time{}
}

// end is the call at the end of the time: a last try if it is the place's turn.
func (p *place) end() call {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.last = true
	if !p.isFirst() {
		return callOver
	}
	p.begin()
	return callTry
}

// begin begins a try. The caller holds the mutex.
func (p *place) begin() {
	p.trying, p.tried = true, true
	p.looked()
	if !p.isFirst() {
		return
	}
	for _, l := range p.lines {
		l.busy, l.due = true, time.Time{}
	}
}

// looked ends the right to a try out of turn.
func (p *place) looked() {
	if p.looks {
		p.looks = false
		for _, l := range p.lines {
			l.lookers--
		}
	}
}

func (p *place) isFirst() bool {
	return !slices.ContainsFunc(p.lines, func(l *line) bool { return l.places[0] != p })
}

func (p *place) isUninformed() bool {
	return p.queue.announces() && slices.ContainsFunc(p.keys, func(k *key) bool { return !k.informed })
}

// track begins to hear of changes of the keys. A try must follow, because a lock may have
// become free before.
func (p *place) track(ctx context.Context, until time.Time) {
	q := p.queue
	q.mu.Lock()
	for _, k := range p.keys {
		k.tracked = true
	}
	q.mu.Unlock()
	ctx, cancel := context.WithDeadline(ctx, until)
	q.tracker.Track(ctx, p.names...)
	cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, k := range p.keys {
		k.informed = true
		p.lines[i].due = time.Now()
	}
}

// settle ends a try.
func (p *place) settle(result Result) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.settleLocked(result)
}

func (p *place) settleLocked(result Result) {
	p.trying = false
	now := time.Now()
	for _, l := range p.lines {
		if p.isFirst() {
			l.settle(result, now, p.queue.netAt(now))
		} else if result == Granted {
			l.settleEcho(now)
		}
	}
}

// leave gives up the place. The next in each line becomes its head.
func (p *place) leave() {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.trying {
		p.settleLocked(Undecided)
	}
	p.looked()
	for i, l := range p.lines {
		at := slices.Index(l.places, p)
		l.places = slices.Delete(l.places, at, at+1)
		if len(l.places) > 0 {
			if at == 0 {
				l.places[0].signal()
				l.signalLookers()
			}
			continue
		}
		k, name := p.keys[i], p.names[i]
		delete(k.lines, p.db)
		if len(k.lines) > 0 {
			continue
		}
		delete(q.keys, name)
		if k.tracked {
			// The mutex is held, so that Untrack comes before the Track of the next line.
			q.tracker.Untrack(name)
		}
	}
	q.places.Add(-1)
}

// signal makes the owner look whether it is its turn.
func (p *place) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
