package redlock

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/layer"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/sim"
	"redlock-proxy/redlock/toymaster"
)

// A seed gives the same run each time, to the last byte that a master executes, however many
// processors there are and whatever else the machine does.
func TestSimulationReplaysASeed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	seeds := uint64(24)
	if layer.Chosen() == layer.Long {
		seeds = 100
	}
	for seed := uint64(1001); seed < 1001+seeds; seed++ {
		var texts []string
		run := func(processors int, log *simLog) *simulation {
			runtime.GOMAXPROCS(processors)
			s, _ := simulate(t, seed, simOptions{log: log, heals: seed%4 == 0, deletes: seed%4 == 1})
			return s
		}
		for _, processors := range []int{1, 8} {
			sum := sha256.New()
			s := run(processors, &simLog{sum: sum})
			texts = append(texts, fmt.Sprintf("%s%x", s.history.text(), sum.Sum(nil)))
		}
		if texts[0] == texts[1] {
			continue
		}
		one, many := &simLog{}, &simLog{}
		run(1, one)
		run(8, many)
		t.Errorf("seed %d does not repeat: %s\n%s", seed, firstDifference(texts), firstDifference([]string{one.text(), many.text()}))
	}
}

// firstDifference returns the lines in which two texts begin to differ.
func firstDifference(all []string) (lines string) {
	at := 0
	for at < min(len(all[0]), len(all[1])) && all[0][at] == all[1][at] {
		at++
	}
	for _, text := range all {
		lines += "\n..." + text[max(0, at-300):min(len(text), at+200)]
	}
	return lines
}

// The smallest simulation: one Locker and one master in one thread, and time that only they move.
func TestOneLockerAndOneMasterInAWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(1)
		l := w.Loop(slog.New(slog.DiscardHandler))
		m := newMaster("m1")
		k := toymaster.NewLink("p-m1", m, 1, w)
		k.Delay = time.Millisecond
		cfg := timelineConfig()
		cfg.Loop = l
		cfg.Masters = []Master{{Name: m.Name, Dial: k.Dial}}
		w.Run(func() {
			locker, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			w.Wait(second)
			began := time.Now()
			o := locker.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: second})
			if took := time.Since(began); o.Verdict != Won || took != 2*time.Millisecond || m.Value(key) != tokenA {
				t.Errorf("%v after %v, and the master holds %q", o.Verdict, took, m.Value(key))
			}
			if o := locker.Release(t.Context(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won || m.Value(key) != "" {
				t.Errorf("released: %v, and the master holds %q", o.Verdict, m.Value(key))
			}
			answered := make(chan struct{})
			l.Go(func(task *loop.Task) (rests bool) { // which parks meanwhile
				o = locker.Acquire(loop.NewContext(t.Context(), task), AcquireRequest{Key: []byte(key), Value: []byte(tokenB), TTL: second})
				close(answered)
				return false
			})
			if w.Wait(second, answered) != 0 || o.Verdict != Won || m.Value(key) != tokenB {
				t.Errorf("by a task: %v, and the master holds %q", o.Verdict, m.Value(key))
			}
			locker.Close(t.Context())
		})
		w.Close()
	})
}
