package operation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestRollingRestart restarts every master and then every proxy, one at a time, as the
// README says, while clients lock without a pause. They get locks while a master is down,
// while it is back, and through the other proxy while one restarts. A command fails only if
// a quorum did not answer in time, as on any busy machine. No two clients ever hold the lock
// at once.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	const lease = 800 * time.Millisecond
	c := rig.StartServers(t)
	options := rig.Options{RestartDelay: 4 * time.Second, MaxQuarantine: 5 * time.Second, LogLevel: "info"}
	proxies := []*rig.Proxy{c.AddProxy(t, options), c.AddProxy(t, options)}
	resource := &history.Register{Key: "lock:rolling"}
	var grants, undecided, errors [2]atomic.Int64
	var failed [2]atomic.Value // the latest error other than QUORUMLOST
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	for i := range 6 {
		client := redis.NewClient(&redis.Options{Addr: proxies[i%2].Addr(), MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ReadTimeout: rig.Patience})
		defer client.Close()
		working.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				token := fmt.Sprintf("client-%d-turn-%010d", i, turn)
				until := time.Now().Add(lease - history.LostToDrift(lease))
				ok, err := rig.Acquire(t.Context(), client, resource.Key, token, lease)
				if err == nil && ok && time.Now().Before(until) {
					h := resource.Enter(i, token, until)
					resource.Write(h)
					resource.Leave(h)
					grants[i%2].Add(1)
					_, err = rig.Release(t.Context(), client, resource.Key, token)
				}
				switch {
				case rig.NoQuorum(err):
					undecided[i%2].Add(1)
				case err != nil:
					errors[i%2].Add(1)
					failed[i%2].Store(fmt.Sprintf("at %s: %v", time.Now().UTC().Format(time.TimeOnly), err))
				}
				rig.Pause(ctx, 5*time.Millisecond)
			}
		})
	}
	goesOn := func(through int) {
		t.Helper()
		before := grants[through].Load()
		rig.WaitFor(t, fmt.Sprintf("clients of proxy %d lock", through+1), func() error {
			if grants[through].Load() < before+5 {
				return fmt.Errorf("%d times since", grants[through].Load()-before)
			}
			return nil
		})
	}
	for _, master := range c.Masters {
		if _, err := master.Proc.Stop(rig.Patience); err != nil {
			t.Fatal(err)
		}
		for _, p := range proxies {
			p.WaitState(t, master, "unreachable")
		}
		goesOn(0)
		master.Start(t)
		rig.WaitFor(t, master.Name+" is back", func() error { // in quarantine, or already past it
			if state := proxies[0].State(t, master); state != "quarantined" && state != "voting" {
				return fmt.Errorf("it is %s", state)
			}
			return nil
		})
		goesOn(1)
		for _, p := range proxies {
			p.WaitState(t, master, "voting")
		}
	}
	for i := range proxies {
		if n := errors[i].Load(); n > 0 {
			t.Errorf("%d lock commands through proxy %d failed while masters were restarted one at a time, the last %v", n, i+1, failed[i].Load())
		}
	}
	for i, p := range proxies {
		other := errors[1-i].Load()
		if code, err := p.Proc.Stop(rig.Patience); code != 0 || err != nil {
			t.Fatalf("proxy %d ended with code %d: %v", i+1, code, err)
		}
		goesOn(1 - i)
		p.Start(t)
		rig.WaitFor(t, "it is ready again", p.Ready)
		goesOn(i)
		if n := errors[1-i].Load() - other; n > 0 {
			t.Errorf("%d lock commands through the other proxy failed while proxy %d was restarted, the last %v", n, i+1, failed[1-i].Load())
		}
	}
	t.Logf("%d and %d grants, %d and %d times QUORUMLOST", grants[0].Load(), grants[1].Load(), undecided[0].Load(), undecided[1].Load())
	if len(resource.Breaches) > 0 {
		t.Errorf("%d times two clients held the lock, first: %s", len(resource.Breaches), resource.Breaches[0].What)
	}
}
