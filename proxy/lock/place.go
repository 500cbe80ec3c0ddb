package lock

import (
	"context"
	"slices"
	"time"
)

// A place is that of one request in the line of each of its keys. One goroutine owns it.
type place struct {
	all     *lines
	request *waitRequest
	id      lineID
	wake    chan struct{}

	waits bool // waitRequest.Waits was called
	last  bool // it made the try at the end of its time

	// Guarded by the mutex of lines. names, keys and lines have one of each for each key.
	names  []string
	keys   []*waitedKey
	lines  []*line
	own    time.Time // when it may make a try out of its turn; zero: not
	tried  bool
	trying bool
}

// await waits until the place has begun a try, which settle ends. At the end of the time, that is a
// last try if it is the place's turn. await returns false if the time is over, or the
// context has ended.
func (p *place) await(ctx context.Context, until time.Time) bool {
	for ctx.Err() == nil && !p.last {
		now := time.Now()
		tracks, at := p.step(now)
		if at.IsZero() {
			return true
		}
		if !p.waits && p.request.Waits != nil {
			p.request.Waits()
		}
		p.waits = true
		switch {
		case tracks:
			p.track(ctx, until)
			continue
		case !now.Before(until):
			return p.beginLast()
		case until.Before(at):
			at = until
		}
		alarm := time.NewTimer(at.Sub(now))
		select {
		case <-p.wake:
		case <-alarm.C:
		case <-ctx.Done():
		case <-p.request.Closing:
			alarm.Stop()
			return false
		}
		alarm.Stop()
	}
	return false
}

// never is when a place tries that waits for its turn.
var never = time.Unix(1<<40, 0)

// step returns the time of the place's next try. If it is zero, the try has begun. tracks tells that
// changes of its keys must be tracked first.
func (p *place) step(now time.Time) (tracks bool, at time.Time) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	at = earliest(never, p.own)
	if p.isFirst() {
		for _, l := range p.lines {
			if l.places[0] == p {
				at = earliest(at, l.due, l.recheck)
			}
		}
		tracks = p.all.announces() && slices.ContainsFunc(p.keys, func(k *waitedKey) bool { return !k.heard })
	} else if slices.ContainsFunc(p.lines, (*line).handsOver) {
		at = never
	}
	if at.After(now) {
		return tracks, at
	}
	p.begin()
	return false, time.Time{}
}

// beginLast begins the try at the end of the time, if it is the place's turn.
func (p *place) beginLast() bool {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.last = true
	if !p.isFirst() {
		return false
	}
	p.begin()
	return true
}

// begin begins a try. The caller holds the mutex.
func (p *place) begin() {
	p.trying, p.tried, p.own = true, true, time.Time{}
	if !p.isFirst() {
		return
	}
	for _, l := range p.lines {
		if l.places[0] == p {
			l.busy, l.due = true, time.Time{}
		}
	}
}

// isFirst tells whether it is the place's turn: it is the head of all its lines, or of any if it
// takes from any key.
func (p *place) isFirst() bool {
	heads := 0
	for _, l := range p.lines {
		if l.places[0] == p {
			heads++
		}
	}
	return heads == len(p.lines) || heads > 0 && p.id.kind != forLock
}

// track begins to hear of changes of the keys. A try must follow, because a key may have changed
// before.
func (p *place) track(ctx context.Context, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	p.all.tracker.Track(ctx, p.names...)
	cancel()
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	for i, k := range p.keys {
		if !k.heard {
			k.heard = true
			p.lines[i].dueAt(time.Now())
		}
	}
}

// settle ends a try.
func (p *place) settle(result tryResult) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.settleLocked(result)
}

func (p *place) settleLocked(result tryResult) {
	p.trying = false
	now := time.Now()
	if result == tryAgain || len(p.lines) == 0 {
		p.own = pollAt(now)
	}
	first := p.isFirst()
	for _, l := range p.lines {
		if first && l.places[0] == p {
			l.settle(result, now, p.all.recheckAt(now))
		} else if result == tryGranted {
			l.settleGrant(now)
		}
	}
}

// leave gives up the place. The next in each line becomes its head.
func (p *place) leave() {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	if p.trying { // the try has panicked
		p.settleLocked(tryUndecided)
	}
	for i, l := range p.lines {
		at := slices.Index(l.places, p)
		l.places = slices.Delete(l.places, at, at+1)
		if len(l.places) > 0 {
			if at == 0 {
				l.places[0].signal()
				l.signalOthers()
			}
			continue
		}
		k, name := p.keys[i], p.names[i]
		delete(k.lines, p.id)
		if len(k.lines) > 0 {
			continue
		}
		delete(p.all.keys, name)
		if k.heard {
			// The mutex is held, so that Untrack comes before the Track of the next line.
			p.all.tracker.Untrack(name)
		}
	}
	p.all.places.Add(-1)
}

// signal makes the owner look whether it is its turn.
func (p *place) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
