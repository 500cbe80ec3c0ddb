package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// TestReleaseIsNeverHeldBack: a release goes to every master even while an acquire of the
// same key through the same proxy is undecided. This holds whether the proxy has seen the
// text of the script or only its hash.
func TestReleaseIsNeverHeldBack(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	first := c.Proxy.Client(t)
	var links []*rig.Link
	var addresses []string
	for _, master := range c.Masters {
		link := rig.StartLink(t, master.Addr())
		links, addresses = append(links, link), append(addresses, "redis://"+link.Addr())
	}
	for _, textKnown := range []bool{true, false} {
		t.Run(fmt.Sprintf("text known %v", textKnown), func(t *testing.T) {
			// An acquire is undecided for a minute, so that a busy machine has time for the release.
			slow := c.AddProxy(t, rig.Options{Masters: addresses, MasterTimeout: time.Minute, RestartDelay: 3 * time.Minute, RetryCount: 1}).Client(t)
			rig.MustAcquire(t, slow, "lock:warm", "token-to-warm-up-with", rig.LongTTL)
			if textKnown {
				rig.MustRelease(t, slow, "lock:warm", "token-to-warm-up-with")
			} else { // the masters know the script, this proxy does not
				rig.MustRelease(t, first, "lock:warm", "token-to-warm-up-with")
			}
			rig.MustAcquire(t, first, "lock:back", "token-of-the-holder-1", rig.LongTTL)
			rig.WaitFor(t, "all hold it", func() error {
				if n := c.Holders(t, "lock:back", "token-of-the-holder-1"); n != rig.MasterCount {
					return fmt.Errorf("%d do", n)
				}
				return nil
			})
			var answer []func()
			for _, link := range links[:rig.Quorum] {
				release := link.Hold()
				defer release()
				answer = append(answer, release)
			}
			before := setsSeen(t, c)
			loser := make(chan error, 1)
			go func() {
				ok, err := rig.Acquire(context.Background(), slow, "lock:back", "token-of-the-loser-1", rig.LongTTL)
				if ok {
					err = errors.New("acquired what is held")
				}
				loser <- err
			}()
			rig.WaitFor(t, "the acquire reaches every master", func() error {
				if n := setsSeen(t, c) - before; n < rig.MasterCount {
					return fmt.Errorf("%d of them have it", n)
				}
				return nil
			})
			released := make(chan error, 1)
			go func() {
				n, err := rig.CompareAndDelete.Run(context.Background(), slow, []string{"lock:back"}, "token-of-the-holder-1").Int()
				if n != 1 {
					err = fmt.Errorf("the release answers %d, %w", n, err)
				}
				released <- err
			}()
			c.WaitGone(t, "lock:back")
			select {
			case err := <-loser:
				t.Fatalf("the release reached the masters only after the acquire was decided (%v)", err)
			default:
			}
			for _, release := range answer {
				release()
			}
			for _, answer := range []chan error{loser, released} {
				if err := <-answer; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// setsSeen returns the number of SETs that the masters have executed.
func setsSeen(t testing.TB, c *rig.Cluster) (n int) {
	t.Helper()
	for _, master := range c.Masters {
		stats := master.Direct.InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_set")
		var calls int
		if _, err := fmt.Sscanf(stats, "calls=%d,", &calls); err == nil {
			n += calls
		}
	}
	return n
}
