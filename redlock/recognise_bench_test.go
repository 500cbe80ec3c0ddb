package redlock

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// BenchmarkRelease measures lock+release cycles over five servers. The release is a
// compare-and-delete by EVALSHA: recognised, examined, and as our own release by value.
// They take turns, because only ratios within one run mean anything. The median of the
// rounds counts.
func BenchmarkRelease(b *testing.B) {
	const rounds = 9
	s := startLiveSet(b, 5)
	text := []byte(releaseByValue)
	run := func(key, token string) RunRequest {
		return RunRequest{
			Keys:    [][]byte{[]byte(key)},
			Args:    bytesOf([]string{"EVALSHA", sha1Of(text), "1", key, token}),
			Scripts: [][]byte{text},
		}
	}
	contestants := []struct {
		name    string
		release func(key, token string) Outcome
	}{
		{"recognised", func(key, token string) Outcome { return s.Run(b.Context(), run(key, token)) }},
		{"examined", func(key, token string) Outcome { return s.Run(b.Context(), unrecognised(run(key, token))) }},
		{"own", func(key, token string) Outcome {
			return s.releaseValue(0, []byte(key), []byte(token), stream.NewLifetime(time.Now()), stream.AnyLifetime)
		}},
	}
	for _, clients := range []int{1, 50} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			costs := map[string][]cycleCost{}
			for b.Loop() {
				for range rounds {
					for _, c := range contestants {
						costs[c.name] = append(costs[c.name], s.cycles(b, clients, c.release))
					}
				}
			}
			for _, c := range contestants {
				median := func(of func(cycleCost) float64) float64 {
					slices.SortFunc(costs[c.name], func(x, y cycleCost) int { return int(1000 * (of(x) - of(y))) })
					return of(costs[c.name][len(costs[c.name])/2])
				}
				b.Logf("%d clients, %s: a release takes %.0f us, a cycle %.0f us of this process and %.1f us of each server",
					clients, c.name, median(func(c cycleCost) float64 { return c.release }),
					median(func(c cycleCost) float64 { return c.own }), median(func(c cycleCost) float64 { return c.server }))
			}
		})
	}
}

// cycleCost is the cost of a cycle in microseconds: the client's wait for its release, and
// the CPU time of proxy and servers.
type cycleCost struct{ release, own, server float64 }

// cycles runs this number of clients, which lock and release as fast as they can for a
// while.
func (s *liveSet) cycles(b *testing.B, clients int, release func(key, token string) Outcome) cycleCost {
	var wg sync.WaitGroup
	var waited, done atomic.Int64
	own, servers := ownCPU(b), s.serverCPU()
	stop := time.Now().Add(300 * time.Millisecond)
	for i := range clients {
		wg.Go(func() {
			key, token := fmt.Sprint("lock:", i), fmt.Sprint("a token of sixteen bytes and more ", i)
			for time.Now().Before(stop) {
				if o := s.Acquire(b.Context(), AcquireRequest{Key: []byte(key), Value: []byte(token), TTL: time.Minute}); o.Verdict != Won {
					b.Errorf("acquire: %v", o.Verdict)
					return
				}
				began := time.Now()
				if o := release(key, token); o.Verdict != Won {
					b.Errorf("release: %v", o.Verdict)
					return
				}
				waited.Add(time.Since(began).Microseconds())
				done.Add(1)
			}
		})
	}
	wg.Wait()
	n := float64(done.Load())
	return cycleCost{
		release: float64(waited.Load()) / n,
		own:     float64((ownCPU(b) - own).Microseconds()) / n,
		server:  (s.serverCPU() - servers) * 1e6 / n / float64(len(s.masters)),
	}
}

func ownCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU is the CPU time that all servers have used, in seconds.
func (s *liveSet) serverCPU() float64 {
	total := 0.0
	for _, m := range s.masters {
		info, _ := resp.ParseBulk(m.must("INFO", "cpu"))
		for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
			seconds, err := strconv.ParseFloat(stream.InfoField(info, field), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			total += seconds
		}
	}
	return total
}
