package redlock

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkRelease measures lock+release cycles over five servers, the release
// being compare-and-delete by EVALSHA: recognised, examined, and as one of our
// own releases that knows the value. They take turns, for only ratios within
// one run mean anything, and the median of the rounds counts.
func BenchmarkRelease(b *testing.B) {
	const rounds = 7
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
		{"examined", func(key, token string) Outcome { return s.runOnce(b.Context(), run(key, token), false) }},
		{"own", func(key, token string) Outcome {
			return s.releaseValue(0, []byte(key), []byte(token), &lifetime{until: time.Now()})
		}},
	}
	for _, clients := range []int{1, 50} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			took := map[string][]float64{}
			for b.Loop() {
				for range rounds {
					for _, c := range contestants {
						took[c.name] = append(took[c.name], s.releases(b, clients, c.release))
					}
				}
			}
			var words []string
			for _, c := range contestants {
				slices.Sort(took[c.name])
				median := took[c.name][len(took[c.name])/2]
				b.ReportMetric(median, c.name+"-us")
				words = append(words, fmt.Sprintf("%s %.0f us (%.0f to %.0f)", c.name, median, took[c.name][0], took[c.name][len(took[c.name])-1]))
			}
			b.Logf("%d clients, median of %d rounds: %s", clients, len(took["own"]), strings.Join(words, ", "))
		})
	}
}

// releases is the microseconds a release takes its client, on average, when so
// many lock and release as fast as they can for a while.
func (s *liveSet) releases(b *testing.B, clients int, release func(key, token string) Outcome) float64 {
	var wg sync.WaitGroup
	var nanoseconds, done atomic.Int64
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
				nanoseconds.Add(int64(time.Since(began)))
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(nanoseconds.Load()) / float64(done.Load()) / 1000
}
