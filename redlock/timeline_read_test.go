package redlock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/sim"
)

// Reads, and the swaps of the old SETNX page.

func (w *timeline) get() Outcome { return w.locker.Get(context.Background(), 0, []byte(key)) }

// swap executes GETSET. Value is the old value.
func (w *timeline) swap(l *Locker, value string) Outcome {
	o := l.Run(context.Background(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: bytesOf([]string{"GETSET", key, value})})
	if v, ok := resp.ParseBulk(o.Reply); ok && o.Verdict == Won {
		o.Value = v
	}
	return o
}

func TestTimelineAtMostOneOfRacingSwapsWins(t *testing.T) {
	// Three proxies race. When the next one comes, their progress differs from master to
	// master.
	for order := range 64 {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("X X X X X", 0)
			proxies := []*Locker{w.locker}
			for range 2 {
				l, links := w.connect("racer", timelineConfig())
				w.others = append(w.others, l)
				proxies = append(proxies, l)
				for i, k := range links {
					k.SetDelay(time.Duration(sim.Hash(uint64(order), uint64(len(proxies)), uint64(i))%20)*time.Millisecond, 0)
				}
			}
			for i, k := range w.links {
				k.SetDelay(time.Duration(sim.Hash(uint64(order), uint64(i))%20)*time.Millisecond, 0)
			}
			racing := w.crew()
			winners := 0
			for i, l := range proxies {
				racing.Go(func() {
					value := []string{tokenA, tokenB, tokenC}[i]
					o := w.swap(l, value)
					switch {
					case o.Verdict == NoQuorum:
					case string(o.Value) == foreign:
						winners++
					case o.Value == nil || string(o.Value) == value:
						t.Errorf("a loser was told %q", o.Value)
					}
				})
			}
			racing.Wait()
			if winners > 1 {
				t.Errorf("order %d: %d winners", order, winners)
			}
			w.elapse(0)
		})
	}
}

func TestTimelineARaceOfSwapsLeavesOneValue(t *testing.T) {
	for order := range 32 {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("1000.5 1000.5 1000.5 1000.5 1000.5", 0)
			racers := []*Locker{w.locker}
			for i := range 2 {
				l, links := w.connect("racer", timelineConfig())
				w.others = append(w.others, l)
				racers = append(racers, l)
				for j, k := range links {
					k.SetDelay(time.Duration(sim.Hash(uint64(order), uint64(i), uint64(j))%20)*time.Millisecond, 0)
				}
			}
			racing := w.crew()
			won := 0
			for i, l := range racers {
				racing.Go(func() {
					if w.swap(l, fmt.Sprintf("200%d.25", i)).Verdict == Won {
						won++
					}
				})
			}
			racing.Wait()
			w.elapse(10 * time.Second)
			o := w.locker.Get(t.Context(), 0, []byte(key))
			if o.Verdict != Won || won > 0 && !strings.HasPrefix(string(o.Value), "200") {
				t.Errorf("order %d: %v %q, and %d swaps were won", order, o.Verdict, o.Value, won)
				w.dump()
			}
		})
	}
}
