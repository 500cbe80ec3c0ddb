package loop

import (
	"context"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// This file is what the goroutines around a loop wait with, and what they leave to chance. A World decides
// both. A nil Loop does as a real one.

// in is the World of a loop, or nil.
func (l *Loop) in() World {
	if l == nil {
		return nil
	}
	return l.world
}

const (
	// Forever is a wait without an end of its own.
	Forever time.Duration = math.MaxInt64
	// Late is the result of a Wait whose time was over.
	Late = -1
)

// Wait returns the index of a channel that is closed or was received from, or Late after d. If several
// channels are ready at once, it is the first. A task must have left its loop.
func (l *Loop) Wait(d time.Duration, on ...<-chan struct{}) int {
	if w := l.in(); w != nil {
		return w.Wait(d, on...)
	}
	if i := firstReady(on); i != Late || d <= 0 {
		return i
	}
	var few [3]<-chan struct{}
	copy(few[:], on[:min(len(on), len(few))])
	var late <-chan time.Time
	if d != Forever {
		timer := time.NewTimer(d)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-few[0]:
		return 0
	case <-few[1]:
		return 1
	case <-few[2]:
		return 2
	case <-late:
		return Late
	}
}

func firstReady(on []<-chan struct{}) int {
	for i, c := range on {
		select {
		case <-c:
			return i
		default:
		}
	}
	return Late
}

// Spawn is of.Go, and Join is of.Wait. f may Wait.
func (l *Loop) Spawn(of *sync.WaitGroup, f func()) {
	if w := l.in(); w != nil {
		w.Spawn(l, of, f)
		return
	}
	of.Go(f)
}

// Join waits for all that was spawned.
func (l *Loop) Join(of *sync.WaitGroup) {
	if w := l.in(); w != nil {
		w.Join(of)
		return
	}
	of.Wait()
}

// After has f called after d, on no loop. f must not wait.
func (l *Loop) After(d time.Duration, f func()) {
	if w := l.in(); w != nil {
		w.AfterFunc(d, f)
		return
	}
	time.AfterFunc(d, f)
}

// OnEnd has f called when ctx ends, as context.AfterFunc does. f must not wait.
func (l *Loop) OnEnd(ctx context.Context, f func()) (stop func() bool) {
	if w := l.in(); w != nil {
		return w.OnEnd(ctx, f)
	}
	return context.AfterFunc(ctx, f)
}

// Draw returns a random time from 0 up to d, without d.
func (l *Loop) Draw(d time.Duration) time.Duration {
	if w := l.in(); w != nil {
		return time.Duration(w.Draw() % uint64(d))
	}
	return rand.N(d)
}

// Hash returns a number for a text that nobody can foresee.
func (l *Loop) Hash(text string) uint64 {
	if w := l.in(); w != nil {
		return w.Hash(text)
	}
	return maphash.String(hashSeed, text)
}

var hashSeed = maphash.MakeSeed()
