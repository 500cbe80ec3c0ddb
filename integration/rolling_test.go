package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestRollingRestart restarts every master and then every proxy, one at a time
// as the README says, under clients that lock without a pause. While masters
// restart no lock command fails for want of a quorum; while a proxy restarts
// those of the other see nothing of it; and no two clients ever hold the lock.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	redis.SetLogger(silence{})
	const lease = 800 * time.Millisecond
	c := startServers(t)
	options := proxyOptions{restartDelay: 3 * time.Second, maxQuarantine: 5 * time.Second, logLevel: "info"}
	proxies := []*proxyProcess{c.addProxy(t, options), c.addProxy(t, options)}
	resource := &register{key: "lock:rolling"}
	var grants, errors [2]atomic.Int64
	var failed atomic.Value // the last failure
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	for i := range 6 {
		client := redis.NewClient(&redis.Options{Addr: proxies[i%2].addr(), MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ReadTimeout: patience})
		defer client.Close()
		working.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				token := fmt.Sprintf("client-%d-turn-%010d", i, turn)
				until := time.Now().Add(lease - lostToDrift(lease))
				ok, err := acquire(t.Context(), client, resource.key, token, lease)
				if err == nil && ok && time.Now().Before(until) {
					h := resource.enter(i, token, until)
					resource.write(h)
					resource.leave(h)
					grants[i%2].Add(1)
					_, err = release(t.Context(), client, resource.key, token)
				}
				if err != nil {
					errors[i%2].Add(1)
					failed.Store(fmt.Sprintf("at %s: %v", time.Now().UTC().Format(time.TimeOnly), err))
				}
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
	goesOn := func(through int) {
		t.Helper()
		before := grants[through].Load()
		waitFor(t, fmt.Sprintf("clients of proxy %d lock", through+1), func() error {
			if grants[through].Load() < before+5 {
				return fmt.Errorf("%d times since", grants[through].Load()-before)
			}
			return nil
		})
	}
	for _, master := range c.masters {
		if _, err := master.proc.Stop(patience); err != nil {
			t.Fatal(err)
		}
		for _, p := range proxies {
			p.waitState(t, master, "away")
		}
		goesOn(0)
		master.start(t)
		waitFor(t, master.name+" is back", func() error { // in quarantine, unless this looks so late that it is over
			if state := proxies[0].state(t, master); state != "quarantined" && state != "certified" {
				return fmt.Errorf("it is %s", state)
			}
			return nil
		})
		goesOn(1)
		for _, p := range proxies {
			p.waitState(t, master, "certified")
		}
	}
	if a, b := errors[0].Load(), errors[1].Load(); a+b > 0 {
		t.Errorf("%d lock commands failed while masters were restarted one at a time, the last %v", a+b, failed.Load())
	}
	for i, p := range proxies {
		other := errors[1-i].Load()
		if code, err := p.proc.Stop(patience); code != 0 || err != nil {
			t.Fatalf("proxy %d ended with code %d: %v", i+1, code, err)
		}
		goesOn(1 - i)
		p.start(t)
		waitFor(t, "it is ready again", p.ready)
		goesOn(i)
		if n := errors[1-i].Load() - other; n > 0 {
			t.Errorf("%d lock commands through the other proxy failed while proxy %d was restarted, the last %v", n, i+1, failed.Load())
		}
	}
	if len(resource.breaches) > 0 {
		t.Errorf("%d times two clients held the lock, first: %s", len(resource.breaches), resource.breaches[0].what)
	}
}
