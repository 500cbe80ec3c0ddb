package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// metrics is what the proxy shows of itself.
func (p *proxyProcess) metrics(t testing.TB) string {
	t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", p.admin))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// metric is one series' value as the proxy shows it; empty: it shows none.
func (p *proxyProcess) metric(t testing.TB, series string) string {
	t.Helper()
	for line := range strings.Lines(p.metrics(t)) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// state is how the proxy says that a master stands.
func (p *proxyProcess) state(t testing.TB, master *redisServer) string {
	t.Helper()
	return p.stateOf(t, master.addr())
}

// stateOf is state of a master by the name that the proxy has for it.
func (p *proxyProcess) stateOf(t testing.TB, master string) string {
	t.Helper()
	for _, state := range []string{"away", "uncertified", "quarantined", "certified", "barred"} {
		if p.metric(t, fmt.Sprintf("redlock_master_state{master=%q,state=%q}", master, state)) == "1" {
			return state
		}
	}
	return "unknown"
}

func (p *proxyProcess) waitState(t testing.TB, master *redisServer, want string) {
	t.Helper()
	waitFor(t, master.name+" is "+want, func() error {
		if state := p.state(t, master); state != want {
			return errors.New("it is " + state)
		}
		return nil
	})
}

// reload gives the proxy other options by SIGHUP, waits until it has judged
// them, and wants that to come to the result.
func (p *proxyProcess) reload(t testing.TB, options proxyOptions, result string) {
	t.Helper()
	p.configure(t, options)
	p.hangUp(t, result)
}

func (p *proxyProcess) hangUp(t testing.TB, result string) {
	t.Helper()
	counts := func() (applied, refused string) {
		return p.metric(t, `redlock_config_reloads_total{result="applied"}`), p.metric(t, `redlock_config_reloads_total{result="refused"}`)
	}
	appliedBefore, refusedBefore := counts()
	p.proc.Signal(syscall.SIGHUP)
	waitFor(t, "the reload was judged", func() error {
		applied, refused := counts()
		switch {
		case applied == appliedBefore && refused == refusedBefore:
			return errors.New("nothing has happened")
		case (applied != appliedBefore) != (result == "applied"):
			t.Fatalf("the reload was not %s:\n%s", result, p.proc.Log.Tail(10))
		}
		return nil
	})
}

// moveKeys gives the proxy other options, whose lock rules may move keys, and
// returns what it says of that.
func (p *proxyProcess) moveKeys(t testing.TB, options proxyOptions) string {
	t.Helper()
	p.configure(t, options)
	out, err := exec.Command(p.binary, "-reload", "-move-keys", "-config", p.flags[1]).CombinedOutput()
	if err != nil {
		t.Fatalf("-reload -move-keys: %v\n%s", err, out)
	}
	return string(out)
}

// with is options for the cluster's servers.
func (c *cluster) with(options proxyOptions) proxyOptions {
	options.upstream = c.upstream.url()
	for _, master := range c.masters {
		options.masters = append(options.masters, master.url())
	}
	return options
}

// TestReloadUnderLoad: while clients lock and release without a pause, good and
// bad files come in turn; no client sees an error or loses its connection.
func TestReloadUnderLoad(t *testing.T) {
	c := startServers(t)
	options := c.with(proxyOptions{})
	p := startProxy(t, options)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	clients := make([]*redis.Client, 8)
	cycles := make([]int, len(clients))
	for i := range clients {
		clients[i] = redis.NewClient(&redis.Options{Addr: p.addr(), MaxRetries: -1, ReadTimeout: patience, PoolSize: 1})
		defer clients[i].Close()
		working.Go(func() {
			for ; ctx.Err() == nil; cycles[i]++ {
				key, token := fmt.Sprintf("lock:%d", i), fmt.Sprintf("token-%016d", cycles[i])
				if ok, err := acquire(t.Context(), clients[i], key, token, longTTL); !ok || err != nil {
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
		changed.retryCount = 4 + i
		p.reload(t, changed, "applied")
		changed.restartDelay = time.Hour // longer than max_quarantine
		p.reload(t, changed, "refused")
	}
	stop()
	working.Wait()
	for i, client := range clients {
		if stats := client.PoolStats(); stats.Misses != 1 || cycles[i] == 0 {
			t.Errorf("client %d connected %d times in %d cycles", i, stats.Misses, cycles[i])
		}
	}
	for _, want := range []string{`changed="retry.count: 3 -> 4"`, "max_quarantine: 10m is shorter than restart_delay (1h)"} {
		if !strings.Contains(p.proc.Log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, p.proc.Log.Tail(20))
		}
	}
	if !p.proc.Running() || p.ready() != nil {
		t.Errorf("the proxy is not well: %v", p.ready())
	}
}

// TestReloadMovesKeys: a key that becomes a lock key may be held at the
// upstream still, so nobody gets it until such a lock has ended; then it is the
// masters'.
func TestReloadMovesKeys(t *testing.T) {
	c := startServers(t)
	options := c.with(proxyOptions{rules: []string{"lock:*"}, restartDelay: 3 * time.Second, maxQuarantine: 6 * time.Second})
	p := startProxy(t, options)
	client := p.client(t)
	const ttl = 1500 * time.Millisecond
	taken := time.Now()
	mustAcquire(t, client, "job:held", "token-at-the-upstream", ttl)
	mustAcquire(t, client, "lock:kept", "token-on-the-masters", longTTL)
	options.rules = []string{"lock:*", "job:*"}
	p.reload(t, options, "refused") // SIGHUP moves no keys
	const said = `commands on keys of "job:*" are answered TRYAGAIN until 2`
	if log := strings.ReplaceAll(p.proc.Log.String(), `\"`, `"`); !strings.Contains(log, said) {
		t.Errorf("the log does not say what would come of it:\n%s", p.proc.Log.Tail(5))
	}
	if report := p.moveKeys(t, options); !strings.Contains(report, said) {
		t.Errorf("the report does not say what comes of it:\n%s", report)
	}
	var refusal error
	waitFor(t, "the key is to be had", func() error {
		ok, err := acquire(t.Context(), client, "job:held", "token-of-the-next-holder", longTTL)
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
	c.waitHeld(t, "job:held", "token-of-the-next-holder")
	if owner, err := client.Get(t.Context(), "lock:kept").Result(); owner != "token-on-the-masters" || err != nil {
		t.Errorf("a lock that has not moved has the owner %q, %v", owner, err)
	}
}

// TestReloadChangesCredentials: connections that are made from then on use
// them, and those that a server refuses are refused.
func TestReloadChangesCredentials(t *testing.T) {
	c := startServers(t)
	password := func(word string) {
		for _, master := range c.masters {
			if err := master.direct.Do(t.Context(), "ACL", "SETUSER", "proxy", "reset", "on", ">"+word, "~*", "&*", "+@all").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	enteredWith := func(word string) proxyOptions {
		options := c.with(proxyOptions{})
		for i := range options.masters {
			options.masters[i] = strings.Replace(options.masters[i], "redis://", "redis://proxy:"+word+"@", 1)
		}
		return options
	}
	password("old-secret")
	p := startProxy(t, enteredWith("old-secret"))
	client := p.client(t)
	mustAcquire(t, client, "lock:a", "token-before-the-reload", longTTL)
	p.reload(t, enteredWith("wrong-secret"), "refused")
	if !strings.Contains(p.proc.Log.String(), c.masters[4].addr()+" does not accept the new credentials: WRONGPASS") {
		t.Errorf("the log does not say which server refused:\n%s", p.proc.Log.Tail(10))
	}
	password("new-secret")
	p.reload(t, enteredWith("new-secret"), "applied")
	for _, master := range c.masters {
		if err := master.direct.Do(t.Context(), "CLIENT", "KILL", "USER", "proxy").Err(); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the masters are entered with the new password", func() error {
		ok, err := acquire(t.Context(), client, "lock:b", "token-after-the-reload", longTTL)
		if !ok && err == nil {
			return errors.New("the lock is held")
		}
		return err
	})
	for _, master := range c.masters {
		p.waitState(t, master, "certified")
	}
	mustRelease(t, client, "lock:a", "token-before-the-reload")
	if strings.Contains(p.proc.Log.String(), "-secret") {
		t.Error("a password is in the log")
	}
}

// TestReloadReplacesAMaster: the new one sits out its quarantine before it
// votes, a lock from before is safe all the time, and a proxy with the old list
// counts the old master no more.
func TestReloadReplacesAMaster(t *testing.T) {
	t.Parallel()
	c := startServers(t)
	options := c.with(proxyOptions{})
	first, second := startProxy(t, options), startProxy(t, options)
	client, other := first.client(t), second.client(t)
	mustAcquire(t, client, "lock:kept", "token-before-the-reload", longTTL)
	newcomer := startRedis(t, "newcomer")
	leaving := c.masters[2]

	two := c.with(proxyOptions{})
	two.masters[2], two.masters[3] = newcomer.url(), startRedis(t, "another").url()
	first.reload(t, two, "refused")
	if !strings.Contains(first.proc.Log.String(), "only one master can be replaced at a time") {
		t.Errorf("the log does not say why two are too many:\n%s", first.proc.Log.Tail(5))
	}

	replaced := c.with(proxyOptions{maxQuarantine: 8 * time.Second})
	replaced.masters[2] = newcomer.url()
	first.reload(t, replaced, "applied")
	if state := first.state(t, newcomer); state == "certified" {
		t.Error("the new master votes at once")
	}
	second.waitState(t, leaving, "barred")
	for _, c := range []*redis.Client{client, other} {
		if ok, err := acquire(t.Context(), c, "lock:kept", "token-of-another-client", longTTL); ok || err != nil {
			t.Errorf("a lock that is held: %v %v", ok, err)
		}
		mustAcquire(t, c, "lock:new", "token-after-the-reload", longTTL)
		mustRelease(t, c, "lock:new", "token-after-the-reload")
	}
	first.waitState(t, newcomer, "certified")
	second.reload(t, replaced, "applied")
	second.waitState(t, newcomer, "certified")
	mustRelease(t, other, "lock:kept", "token-before-the-reload")
	for _, p := range []*proxyProcess{first, second} {
		if epoch := p.metric(t, "redlock_set_epoch"); epoch != "2" {
			t.Errorf("the epoch is %s", epoch)
		}
	}
}

// TestProxyStartedWithAnotherMaster: it does not know of the reload that it
// should have been, and a proxy with the old list counts the old master no more.
func TestProxyStartedWithAnotherMaster(t *testing.T) {
	c := startServers(t)
	options := proxyOptions{masterTimeout: 500 * time.Millisecond, restartDelay: 2 * time.Second, maxQuarantine: 3 * time.Second}
	first := startProxy(t, c.with(options))
	client := first.client(t)
	mustAcquire(t, client, "lock:kept", "token-from-before", longTTL)
	leaving, newcomer := c.masters[2], startRedis(t, "newcomer")
	list := c.with(options)
	list.masters[2] = newcomer.url()
	second := startProxy(t, list)
	first.waitState(t, leaving, "barred")
	second.waitState(t, newcomer, "certified")
	other := second.client(t)
	if ok, err := acquire(t.Context(), other, "lock:kept", "token-of-another-client", longTTL); ok || err != nil {
		t.Errorf("a lock that is held: %v %v", ok, err)
	}
	for _, c := range []*redis.Client{client, other} {
		mustAcquire(t, c, "lock:new", "token-after-the-start", longTTL)
		mustRelease(t, c, "lock:new", "token-after-the-start")
	}
	first.reload(t, list, "applied")
	first.waitState(t, newcomer, "certified")
	mustRelease(t, client, "lock:kept", "token-from-before")
	for _, p := range []*proxyProcess{first, second} {
		if epoch := p.metric(t, "redlock_set_epoch"); epoch != "2" {
			t.Errorf("the epoch is %s", epoch)
		}
	}
}
