package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestReleaseIsNeverHeldBack: while an acquire of the same key is undecided, a
// release through the same proxy goes to every master all the same, whether
// the proxy has seen the text of the script or only its hash.
func TestReleaseIsNeverHeldBack(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	first := c.proxy.client(t)
	var links []*slowLink
	var addresses []string
	for _, master := range c.masters {
		link := startSlowLink(t, master.addr())
		links, addresses = append(links, link), append(addresses, "redis://"+link.addr())
	}
	for _, textKnown := range []bool{true, false} {
		t.Run(fmt.Sprintf("text known %v", textKnown), func(t *testing.T) {
			slow := c.addProxy(t, proxyOptions{masters: addresses, masterTimeout: 10 * time.Second, restartDelay: 20 * time.Second, retryCount: 1}).client(t)
			mustAcquire(t, slow, "lock:warm", "token-to-warm-up-with", longTTL)
			if textKnown {
				mustRelease(t, slow, "lock:warm", "token-to-warm-up-with")
			} else { // the masters know it, this proxy does not
				mustRelease(t, first, "lock:warm", "token-to-warm-up-with")
			}
			mustAcquire(t, first, "lock:back", "token-of-the-holder-1", longTTL)
			waitFor(t, "all hold it", func() error {
				if n := c.holders(t, "lock:back", "token-of-the-holder-1"); n != masterCount {
					return fmt.Errorf("%d do", n)
				}
				return nil
			})
			for _, link := range links[:quorum] {
				link.delay(3 * time.Second)
				defer link.delay(0)
			}
			before := c.setsSeen(t)
			loser := make(chan error, 1)
			go func() {
				ok, err := acquire(context.Background(), slow, "lock:back", "token-of-the-loser-1", longTTL)
				if ok {
					err = errors.New("acquired what is held")
				}
				loser <- err
			}()
			waitFor(t, "the acquire reaches every master", func() error {
				if n := c.setsSeen(t) - before; n < masterCount {
					return fmt.Errorf("%d of them have it", n)
				}
				return nil
			})
			released := make(chan error, 1)
			go func() {
				n, err := compareAndDelete.Run(context.Background(), slow, []string{"lock:back"}, "token-of-the-holder-1").Int()
				if n != 1 {
					err = fmt.Errorf("the release answers %d, %w", n, err)
				}
				released <- err
			}()
			c.waitGone(t, "lock:back")
			select {
			case err := <-loser:
				t.Errorf("the release reached the masters only after the acquire was decided (%v)", err)
			default:
				if err := <-loser; err != nil {
					t.Error(err)
				}
			}
			if err := <-released; err != nil {
				t.Error(err)
			}
		})
	}
}

// setsSeen is how many SETs the masters have executed.
func (c *cluster) setsSeen(t testing.TB) (n int) {
	t.Helper()
	for _, master := range c.masters {
		stats := master.direct.InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_set")
		var calls int
		if _, err := fmt.Sscanf(stats, "calls=%d,", &calls); err == nil {
			n += calls
		}
	}
	return n
}
