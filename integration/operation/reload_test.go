package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestReloadUnderLoad: while clients lock and release without a pause, good and bad files
// are loaded in turn. No client sees an error or loses its connection.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	options := c.With(rig.Options{})
	p := rig.StartProxy(t, options)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	clients := make([]*redis.Client, 8)
	cycles := make([]int, len(clients))
	for i := range clients {
		clients[i] = redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, ReadTimeout: rig.Patience, PoolSize: 1})
		defer clients[i].Close()
		working.Go(func() {
			for ; ctx.Err() == nil; cycles[i]++ {
				key, token := fmt.Sprintf("lock:%d", i), fmt.Sprintf("token-%016d", cycles[i])
				if ok, err := rig.Acquire(t.Context(), clients[i], key, token, rig.LongTTL); !ok || err != nil {
					t.Errorf("acquiring %s: %v %v", key, ok, err)
					return
				}
				if n, err := clients[i].Del(t.Context(), key).Result(); n != 1 || err != nil {
					t.Errorf("releasing %s: %d %v", key, n, err)
					return
				}
				if err := clients[i].Incr(t.Context(), "plain").Err(); err != nil {
					t.Errorf("a command for the upstream: %v", err)
					return
				}
			}
		})
	}
	for i := range 6 {
		changed := options
		changed.RetryCount = 4 + i
		p.Reload(t, changed, "applied")
		changed.RestartDelay = time.Hour // longer than max_quarantine
		p.Reload(t, changed, "refused")
	}
	stop()
	working.Wait()
	for i, client := range clients {
		if stats := client.PoolStats(); stats.Misses != 1 || cycles[i] == 0 {
			t.Errorf("client %d connected %d times in %d cycles", i, stats.Misses, cycles[i])
		}
	}
	for _, want := range []string{`changed="retry.count: 3 -> 4"`, "max_quarantine: 10m is shorter than restart_delay (1h)"} {
		if !strings.Contains(p.Proc.Log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, p.Proc.Log.Tail(20))
		}
	}
	if !p.Proc.Running() || p.Ready() != nil {
		t.Errorf("the proxy is not well: %v", p.Ready())
	}
}

// TestReloadMovesKeys: when a key becomes a lock key, a client may still hold it at the
// upstream. So nobody gets it until such a lock has ended. Then it is on the masters.
func TestReloadMovesKeys(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	options := c.With(rig.Options{Rules: []string{"lock:*"}, RestartDelay: 4 * time.Second, MaxQuarantine: 6 * time.Second})
	p := rig.StartProxy(t, options)
	client := p.Client(t)
	const ttl = 1500 * time.Millisecond
	taken := time.Now()
	rig.MustAcquire(t, client, "job:held", "token-at-the-upstream", ttl)
	rig.MustAcquire(t, client, "lock:kept", "token-on-the-masters", rig.LongTTL)
	options.Rules = []string{"lock:*", "job:*"}
	p.Reload(t, options, "refused") // SIGHUP moves no keys
	const said = `commands on keys of "job:*" are answered TRYAGAIN until 2`
	if log := strings.ReplaceAll(p.Proc.Log.String(), `\"`, `"`); !strings.Contains(log, said) {
		t.Errorf("the log does not say what would come of it:\n%s", p.Proc.Log.Tail(5))
	}
	if report := p.MoveKeys(t, options); !strings.Contains(report, said) {
		t.Errorf("the report does not say what comes of it:\n%s", report)
	}
	var refusal error
	rig.WaitFor(t, "the key is to be had", func() error {
		ok, err := rig.Acquire(t.Context(), client, "job:held", "token-of-the-next-holder", rig.LongTTL)
		switch {
		case ok && time.Since(taken) < ttl:
			t.Fatal("it was granted while its holder at the upstream still had it")
		case ok:
			return nil
		case err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN "):
			refusal = err
		}
		return err
	})
	if refusal == nil {
		t.Error("the key was never held back")
	}
	c.WaitHeld(t, "job:held", "token-of-the-next-holder")
	if owner, err := client.Get(t.Context(), "lock:kept").Result(); owner != "token-on-the-masters" || err != nil {
		t.Errorf("a lock that has not moved has the owner %q, %v", owner, err)
	}
}

// TestReloadChangesCredentials: connections made after the reload use the new credentials.
// The proxy does not apply credentials that a server refuses.
func TestReloadChangesCredentials(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	password := func(word string) {
		for _, master := range c.Masters {
			if err := master.Direct.Do(t.Context(), "ACL", "SETUSER", "proxy", "reset", "on", ">"+word, "~*", "&*", "+@all").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	enteredWith := func(word string) rig.Options {
		options := c.With(rig.Options{})
		for i := range options.Masters {
			options.Masters[i] = strings.Replace(options.Masters[i], "redis://", "redis://proxy:"+word+"@", 1)
		}
		return options
	}
	password("old-secret")
	p := rig.StartProxy(t, enteredWith("old-secret"))
	client := p.Client(t)
	rig.MustAcquire(t, client, "lock:a", "token-before-the-reload", rig.LongTTL)
	p.Reload(t, enteredWith("wrong-secret"), "refused")
	if !strings.Contains(p.Proc.Log.String(), c.Masters[4].Addr()+" does not accept the new credentials: WRONGPASS") {
		t.Errorf("the log does not say which server refused:\n%s", p.Proc.Log.Tail(10))
	}
	password("new-secret")
	p.Reload(t, enteredWith("new-secret"), "applied")
	for _, master := range c.Masters {
		if err := master.Direct.Do(t.Context(), "CLIENT", "KILL", "USER", "proxy").Err(); err != nil {
			t.Fatal(err)
		}
	}
	rig.WaitFor(t, "the masters are entered with the new password", func() error {
		ok, err := rig.Acquire(t.Context(), client, "lock:b", "token-after-the-reload", rig.LongTTL)
		if !ok && err == nil {
			return errors.New("the lock is held")
		}
		return err
	})
	for _, master := range c.Masters {
		p.WaitState(t, master, "voting")
	}
	rig.MustRelease(t, client, "lock:a", "token-before-the-reload")
	if strings.Contains(p.Proc.Log.String(), "-secret") {
		t.Error("a password is in the log")
	}
}

// TestReloadReplacesAMaster: the new master serves its quarantine before it votes. A lock
// from before is safe all the time. A proxy with the old list no longer counts the old
// master.
func TestReloadReplacesAMaster(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	options := c.With(rig.Options{RestartDelay: 5 * time.Second})
	first, second := rig.StartProxy(t, options), rig.StartProxy(t, options)
	client, other := first.Client(t), second.Client(t)
	rig.MustAcquire(t, client, "lock:kept", "token-before-the-reload", rig.LongTTL)
	newcomer := rig.StartServer(t, "newcomer")
	leaving := c.Masters[2]

	two := c.With(rig.Options{RestartDelay: 5 * time.Second})
	two.Masters[2], two.Masters[3] = newcomer.URL(), rig.StartServer(t, "another").URL()
	first.Reload(t, two, "refused")
	if !strings.Contains(first.Proc.Log.String(), "one lock master changes at a time") {
		t.Errorf("the log does not say why two are too many:\n%s", first.Proc.Log.Tail(5))
	}

	replaced := c.With(rig.Options{RestartDelay: 5 * time.Second, MaxQuarantine: 8 * time.Second})
	replaced.Masters[2] = newcomer.URL()
	first.Reload(t, replaced, "applied")
	if state := first.State(t, newcomer); state == "voting" {
		t.Error("the new master votes at once")
	}
	second.WaitState(t, leaving, "rejected")
	for _, c := range []*redis.Client{client, other} {
		if ok, err := rig.Acquire(t.Context(), c, "lock:kept", "token-of-another-client", rig.LongTTL); ok || err != nil {
			t.Errorf("a lock that is held: %v %v", ok, err)
		}
		rig.MustAcquire(t, c, "lock:new", "token-after-the-reload", rig.LongTTL)
		rig.MustRelease(t, c, "lock:new", "token-after-the-reload")
	}
	first.WaitState(t, newcomer, "voting")
	second.Reload(t, replaced, "applied")
	second.WaitState(t, newcomer, "voting")
	rig.MustRelease(t, other, "lock:kept", "token-before-the-reload")
	for _, p := range []*rig.Proxy{first, second} {
		if epoch := p.Metric(t, "redlock_set_epoch"); epoch != "2" {
			t.Errorf("the epoch is %s", epoch)
		}
	}
}

// TestProxyStartedWithAnotherMaster: a proxy is started with another list instead of being
// reloaded. A proxy with the old list no longer counts the old master.
func TestProxyStartedWithAnotherMaster(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	options := rig.Options{MasterTimeout: 500 * time.Millisecond, RestartDelay: 2100 * time.Millisecond, MaxQuarantine: 3 * time.Second}
	first := rig.StartProxy(t, c.With(options))
	client := first.Client(t)
	rig.MustAcquire(t, client, "lock:kept", "token-from-before", rig.LongTTL)
	leaving, newcomer := c.Masters[2], rig.StartServer(t, "newcomer")
	list := c.With(options)
	list.Masters[2] = newcomer.URL()
	second := rig.StartProxy(t, list)
	first.WaitState(t, leaving, "rejected")
	second.WaitState(t, newcomer, "voting")
	other := second.Client(t)
	if ok, err := rig.Acquire(t.Context(), other, "lock:kept", "token-of-another-client", rig.LongTTL); ok || err != nil {
		t.Errorf("a lock that is held: %v %v", ok, err)
	}
	for _, c := range []*redis.Client{client, other} {
		rig.MustAcquire(t, c, "lock:new", "token-after-the-start", rig.LongTTL)
		rig.MustRelease(t, c, "lock:new", "token-after-the-start")
	}
	first.Reload(t, list, "applied")
	first.WaitState(t, newcomer, "voting")
	rig.MustRelease(t, client, "lock:kept", "token-from-before")
	for _, p := range []*rig.Proxy{first, second} {
		if epoch := p.Metric(t, "redlock_set_epoch"); epoch != "2" {
			t.Errorf("the epoch is %s", epoch)
		}
	}
}
