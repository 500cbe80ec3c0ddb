package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// resizeLease is the TTL of the locks while the number of masters changes. It is far below the
// restart delay, and far above the moments in which no vote counts.
const resizeLease = 2 * time.Second

// keptLease is the TTL of the locks that their holders extend all the time.
const keptLease = 20 * time.Second

// A resizing is two proxies over five servers, of which the first three are masters at first, and
// clients that lock all the time.
type resizing struct {
	cluster *rig.Cluster
	proxies []*rig.Proxy
	options rig.Options

	resource *history.Register
	ctx      context.Context
	stop     context.CancelFunc
	working  sync.WaitGroup

	mu     sync.Mutex
	failed []string
	grants int
}

func startResizing(t *testing.T, options rig.Options, kept int) *resizing {
	r := &resizing{cluster: rig.StartServers(t), resource: &history.Register{Key: "lock:contended"}}
	options.MasterTimeout, options.LogLevel = 500*time.Millisecond, "info"
	r.options = r.cluster.With(options)
	for range 2 {
		r.proxies = append(r.proxies, rig.StartProxy(t, r.of(3)))
	}
	r.ctx, r.stop = context.WithCancel(t.Context())
	t.Cleanup(func() {
		r.stop()
		r.working.Wait()
	})
	for i := range 6 {
		client := r.proxies[i%2].Client(t)
		r.working.Go(func() { r.contend(client, i) })
	}
	for i, p := range r.proxies[:kept] {
		client, key := p.Client(t), fmt.Sprintf("lock:kept:%d", i)
		rig.MustAcquire(t, client, key, "the-holder-of-"+key, keptLease)
		r.working.Go(func() { r.keep(client, key) })
	}
	return r
}

// of returns the configuration with the first n servers as masters.
func (r *resizing) of(n int) rig.Options {
	options := r.options
	options.Masters = slices.Clone(r.options.Masters[:n])
	return options
}

func (r *resizing) fail(format string, values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, values...))
}

// contend takes the lock that others want, too, and releases it.
func (r *resizing) contend(client *redis.Client, i int) {
	for turn := 0; r.ctx.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%d-turn-%010d", i, turn)
		until := time.Now().Add(resizeLease - history.LostToDrift(resizeLease))
		ok, err := rig.Acquire(context.Background(), client, r.resource.Key, token, resizeLease)
		if err != nil {
			r.fail("acquiring as %s: %v", token, err)
		}
		if err == nil && ok && time.Now().Before(until) {
			h := r.resource.Enter(i, token, until)
			r.resource.Write(h)
			r.resource.Leave(h)
			r.mu.Lock()
			r.grants++
			r.mu.Unlock()
			if _, err = rig.Release(context.Background(), client, r.resource.Key, token); err != nil {
				r.fail("releasing as %s: %v", token, err)
			}
		}
		rig.Pause(r.ctx, 5*time.Millisecond)
	}
}

// keep extends a lock, and finds it its own each time.
func (r *resizing) keep(client *redis.Client, key string) {
	for r.ctx.Err() == nil {
		if ok, err := client.PExpire(context.Background(), key, keptLease).Result(); !ok || err != nil {
			r.fail("extending %s: %v %v", key, ok, err)
		}
		if owner, err := client.Get(context.Background(), key).Result(); owner != "the-holder-of-"+key || err != nil {
			r.fail("%s has the owner %q, %v", key, owner, err)
		}
		rig.Pause(r.ctx, 200*time.Millisecond)
	}
}

// masters waits until a proxy counts n masters, and m of them vote.
func (r *resizing) masters(t *testing.T, p *rig.Proxy, n, m int) {
	t.Helper()
	counted, voting := "none", 0
	for began := time.Now(); time.Since(began) < 2*rig.Patience; time.Sleep(50 * time.Millisecond) {
		counted, voting = p.Metric(t, "redlock_masters_configured"), 0
		for _, master := range r.cluster.Masters {
			if p.State(t, master) == "voting" {
				voting++
			}
		}
		if counted == strconv.Itoa(n) && voting == m {
			return
		}
	}
	t.Fatalf("%s masters count and %d vote, want %d and %d:\n%s\n%s", counted, voting, n, m, p.Proc.Log.Tail(20), r.status(p))
}

func (r *resizing) status(p *rig.Proxy) string {
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	defer client.Close()
	text, _ := client.Do(context.Background(), "REDLOCK", "STATUS").Text()
	return text
}

// check stops the clients. No two held a lock at once, all locks are still there, and a command failed
// only because a quorum did not answer in time. That happens on a busy machine, change or not. That no
// step refuses a command is shown on a clock of its own
// (TestTimelineNoRequestIsRefusedWhileTheNumberChanges).
func (r *resizing) check(t *testing.T) {
	t.Helper()
	r.stop()
	r.working.Wait()
	for _, line := range r.failed {
		t.Log(line)
		if !strings.Contains(line, "QUORUMLOST") {
			t.Error("this is no refusal")
		}
	}
	if len(r.resource.Breaches) > 0 {
		t.Errorf("%d times two clients held the lock, first: %s", len(r.resource.Breaches), r.resource.Breaches[0].What)
	}
	if r.grants == 0 {
		t.Error("no lock was granted")
	}
	t.Logf("%d grants, %d refusals", r.grants, len(r.failed))
}

// goesOn waits for some grants.
func (r *resizing) goesOn(t *testing.T) {
	t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.grants
	}
	before := count()
	rig.WaitFor(t, "clients lock", func() error {
		if count() < before+20 {
			return errors.New("not yet")
		}
		return nil
	})
}

// mayChange waits until a proxy says that the next change may come.
func (r *resizing) mayChange(t *testing.T, p *rig.Proxy) {
	t.Helper()
	rig.WaitFor(t, "the next change may come", func() error {
		if status := r.status(p); strings.Contains(status, "the next change of the lock masters may come at") {
			return errors.New(status)
		}
		return nil
	})
}

// step changes the number of masters to n by reloads of some proxies, when the first of them says that the change may come,
// and waits until so many vote.
func (r *resizing) step(t *testing.T, n, voting int, proxies ...*rig.Proxy) {
	t.Helper()
	r.mayChange(t, proxies[0])
	for _, p := range proxies {
		p.Reload(t, r.of(n), "applied")
	}
	r.masters(t, proxies[0], n, voting)
}

// TestNumberOfMastersChangesUnderLoad goes from three masters to five and back by reloads, while
// clients lock without a pause. Every lock stays, also where one of two proxies gets the list late.
func TestNumberOfMastersChangesUnderLoad(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"both proxies get the list at once": false, "one gets the list late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startResizing(t, rig.Options{RestartDelay: 2100 * time.Millisecond, MaxQuarantine: 4 * time.Second}, 2)
			for _, n := range []int{4, 5, 4, 3} {
				if late {
					r.step(t, n, n, r.proxies[0])
					r.proxies[1].Reload(t, r.of(n), "applied")
				} else {
					r.step(t, n, n, r.proxies...)
				}
				for _, p := range r.proxies {
					r.masters(t, p, n, n)
				}
				r.goesOn(t)
			}
			r.check(t)
		})
	}
}

// TestAMasterDiesWhileTheNumberChanges kills a master after the first addition. The second goes on, because a majority of five
// votes without it. Locks go on, and no two clients ever hold one. A lock that the dead master missed may be on too
// few, so commands on such a lock may be refused.
func TestAMasterDiesWhileTheNumberChanges(t *testing.T) {
	t.Parallel()
	r := startResizing(t, rig.Options{RestartDelay: 2100 * time.Millisecond, MaxQuarantine: 4 * time.Second}, 0)
	r.step(t, 4, 4, r.proxies...)
	dead := r.cluster.Masters[1]
	if _, err := dead.Proc.Stop(rig.Patience); err != nil {
		t.Fatal(err)
	}
	r.masters(t, r.proxies[0], 4, 3)
	r.goesOn(t)
	r.step(t, 5, 4, r.proxies...)
	r.goesOn(t)
	dead.Start(t)
	for _, p := range r.proxies {
		r.masters(t, p, 5, 5)
	}
	r.goesOn(t)
	r.check(t)
}
