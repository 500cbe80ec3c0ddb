package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/child"

	"github.com/redis/go-redis/v9"
)

// sentinelGroup is a master and its replica, watched by three Sentinels.
type sentinelGroup struct {
	name      string
	master    *redisServer // of the beginning
	replica   *redisServer
	sentinels []string // their addresses
	processes []*child.Process
	password  string // of the servers; that of the Sentinels has a word more
}

// startSentinelGroup returns when a failover could happen.
func startSentinelGroup(t *testing.T, name string) *sentinelGroup {
	t.Helper()
	return startSentinelGroupWith(t, name, "")
}

// startSentinelGroupWith has servers and Sentinels ask for passwords.
func startSentinelGroupWith(t *testing.T, name, password string) *sentinelGroup {
	t.Helper()
	g := &sentinelGroup{name: name, master: newRedis(t, name+" master"), replica: newRedis(t, name+" replica"), password: password}
	g.replica.config = []string{"--replicaof", "127.0.0.1", fmt.Sprint(g.master.port), "--repl-ping-replica-period", "1"}
	if password != "" {
		for _, server := range []*redisServer{g.master, g.replica} {
			server.config = append(server.config, "--requirepass", password, "--masterauth", password)
			server.direct.Options().Password = password
		}
	}
	g.master.start(t)
	g.replica.start(t)
	for i := range 3 {
		port := freePort(t)
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %d 2\n"+
			"sentinel down-after-milliseconds %s 2000\nsentinel failover-timeout %s 10000\n",
			port, filepath.Dir(file), name, g.master.port, name, name)
		if password != "" {
			text += fmt.Sprintf("sentinel auth-pass %s %s\nrequirepass %s-word\nsentinel sentinel-pass %s-word\n", name, password, password, password)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		proc, err := child.Start(fmt.Sprintf("sentinel%d", i+1), "redis-server", file, "--sentinel")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proc.Kill)
		g.processes = append(g.processes, proc)
		g.sentinels = append(g.sentinels, fmt.Sprintf("127.0.0.1:%d", port))
	}
	for i := range g.sentinels {
		waitFor(t, "the Sentinels know each other and the replica", func() error {
			fields, err := g.ask(i)
			if err == nil && (fields["num-other-sentinels"] != "2" || fields["num-slaves"] != "1" || fields["flags"] != "master") {
				err = fmt.Errorf("others %s, replicas %s, flags %s", fields["num-other-sentinels"], fields["num-slaves"], fields["flags"])
			}
			return err
		})
	}
	waitFor(t, "the replica has its master's data", func() error {
		if info := g.replica.direct.Info(t.Context(), "replication").Val(); !strings.Contains(info, "master_link_status:up") {
			return errors.New(info)
		}
		return nil
	})
	return g
}

func (g *sentinelGroup) ask(i int) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	options := &redis.Options{Addr: g.sentinels[i], MaxRetries: -1, DisableIdentity: true}
	if g.password != "" {
		options.Password = g.password + "-word"
	}
	client := redis.NewSentinelClient(options)
	defer client.Close()
	return client.Master(ctx, g.name).Result()
}

func (g *sentinelGroup) url() string {
	if g.password == "" {
		return "sentinel://" + strings.Join(g.sentinels, ",") + "/" + g.name
	}
	return "sentinel://:" + g.password + "@" + strings.Join(g.sentinels, ",") + "/" + g.name + "?sentinel_password=" + g.password + "-word"
}

// label is the group's name in metrics and logs.
func (g *sentinelGroup) label() string { return g.name + "@" + g.sentinels[0] }

// waitPromoted waits until all Sentinels name the replica.
func (g *sentinelGroup) waitPromoted(t *testing.T) {
	t.Helper()
	for i := range g.sentinels {
		waitFor(t, "the replica is promoted", func() error {
			fields, err := g.ask(i)
			if err == nil && fields["port"] != fmt.Sprint(g.replica.port) {
				err = errors.New("the master is still at port " + fields["port"])
			}
			return err
		})
	}
}

// TestSentinelUpstream: the upstream fails over under load. Clients of the old
// master are disconnected, and whoever connects then is with the new one. Locks
// do not notice.
func TestSentinelUpstream(t *testing.T) {
	t.Parallel()
	g := startSentinelGroup(t, "app")
	c := startCluster(t, proxyOptions{upstream: g.url(), logLevel: "info"})
	// A session ends with its upstream connection, so locks that are not to
	// notice have connections of their own.
	client, locks := c.proxy.client(t), c.proxy.client(t)
	if err := client.Set(t.Context(), "plain", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if value, ok := g.master.value(t, "plain"); value != "before" || !ok {
		t.Fatalf("the master holds %q", value)
	}
	idle := dialWire(t, c.proxy.addr(), 3)
	idle.expectReply(t, "$6\r\nbefore\r\n", "GET", "plain")
	waitFor(t, "the replica has it", func() error {
		if value, _ := g.replica.value(t, "plain"); value != "before" {
			return fmt.Errorf("it has %q", value)
		}
		return nil
	})

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	for worker := range 4 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key, token := fmt.Sprintf("lock:%d:%d", worker, i), fmt.Sprintf("token-%d-%010d", worker, i)
				if ok, err := acquire(t.Context(), locks, key, token, longTTL); err != nil || !ok {
					t.Errorf("a lock during the failover: %v %v", ok, err)
				}
				if ok, err := release(t.Context(), locks, key, token); err != nil || !ok {
					t.Errorf("a release during the failover: %v %v", ok, err)
				}
				// An error is the truth while there is no master.
				_ = client.Set(ctx, "load", i, 0).Err()
			}
		})
	}
	g.master.crash()
	if rest := idle.expectEnd(t); len(rest) > 0 {
		t.Errorf("a client of the old master got %q", rest)
	}
	g.waitPromoted(t)
	waitFor(t, "the new master gets the writes", func() error {
		return client.Set(t.Context(), "plain", "after", 0).Err()
	})
	if value, _ := g.replica.value(t, "plain"); value != "after" {
		t.Errorf("the new master holds %q", value)
	}

	// A failover on request: the old master lives on as a replica.
	g.master.config = g.replica.config
	g.master.config[2] = fmt.Sprint(g.replica.port)
	g.master.start(t)
	held := dialWire(t, c.proxy.addr(), 2)
	held.expectReply(t, "$5\r\nafter\r\n", "GET", "plain")
	waitFor(t, "the Sentinels know the old master as a replica", func() error {
		fields, err := g.ask(0)
		if err == nil && (fields["num-slaves"] != "1" || fields["flags"] != "master") {
			err = errors.New(fields["num-slaves"] + " replicas, flags " + fields["flags"])
		}
		if err == nil && !strings.Contains(g.master.direct.Info(t.Context(), "replication").Val(), "master_link_status:up") {
			err = errors.New("it is not in step")
		}
		return err
	})
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: g.sentinels[0], MaxRetries: -1, DisableIdentity: true})
	defer sentinel.Close()
	waitFor(t, "a failover begins", func() error { return sentinel.Failover(t.Context(), g.name).Err() })
	if rest := held.expectEnd(t); len(rest) > 0 {
		t.Errorf("a client of the demoted master got %q", rest)
	}
	waitFor(t, "the first master gets the writes again", func() error {
		if err := client.Set(t.Context(), "plain", "again", 0).Err(); err != nil {
			return err
		}
		if value, _ := g.master.value(t, "plain"); value != "again" {
			return fmt.Errorf("it holds %q", value)
		}
		return nil
	})
}

// TestSentinelCheck: -check shows what the Sentinels said, and that too few of
// them answer is a warning. Passwords of the servers and of the Sentinels differ.
func TestSentinelCheck(t *testing.T) {
	g := startSentinelGroupWith(t, "app", "hunter2")
	c := startCluster(t, proxyOptions{upstream: g.url(), logLevel: "warn"})
	check := func() string {
		proc, err := child.Start("check", c.proxy.binary, "-check", "-config", c.proxy.flags[1])
		if err != nil {
			t.Fatal(err)
		}
		<-proc.Done
		return proc.Log.String()
	}
	expect := func(answering int, more string) {
		t.Helper()
		managed := fmt.Sprintf("upstream (%s) is managed by 3 Sentinels, of which %d answer: the master is %s (named by %d), with 1 replica",
			g.label(), answering, g.master.addr(), answering)
		said := check()
		for _, want := range []string{managed, more} {
			if !strings.Contains(said, want) {
				t.Errorf("-check does not say %q:\n%s", want, said)
			}
		}
		if strings.Contains(said, g.password) {
			t.Errorf("-check shows a password:\n%s", said)
		}
	}
	expect(3, "no hazards found")
	g.processes[0].Kill()
	g.processes[1].Signal(syscall.SIGSTOP)
	expect(1, "warning: upstream ("+g.label()+"): 1 of 3 Sentinels answer, and a failover needs a majority of them")
	// New connections are made all the same.
	dialWire(t, c.proxy.addr(), 2).expectReply(t, "+OK\r\n", "SET", "plain", "1")
	if value, _ := g.master.value(t, "plain"); value != "1" {
		t.Errorf("the master holds %q", value)
	}
}

// TestSentinelLockMaster: one of five masters is a group that fails over, and
// the promoted replica lacks a lock that the old master had granted. It begins
// in quarantine, so nobody gets that lock twice, also with two other masters
// gone; locks go on with the others; and it votes when the quarantine is over.
func TestSentinelLockMaster(t *testing.T) {
	t.Parallel()
	g := startSentinelGroup(t, "locks")
	c := startServers(t)
	c.masters = c.masters[:4]
	options := proxyOptions{restartDelay: 5 * time.Second, masterTimeout: time.Second, logLevel: "info", masters: []string{g.url()}}
	for _, master := range c.masters {
		options.masters = append(options.masters, master.url())
	}
	c.proxy = c.addProxy(t, options)
	client := c.proxy.client(t)
	state := func() string { return c.proxy.stateOf(t, g.label()) }
	waitState := func(want string) {
		t.Helper()
		waitFor(t, "the group is "+want, func() error {
			if now := state(); now != want {
				return errors.New("it is " + now)
			}
			return nil
		})
	}
	waitState("certified")
	waitFor(t, "the replica has the marker", func() error {
		if _, ok := g.replica.value(t, "redlock-proxy:master"); !ok {
			return errors.New("it has none")
		}
		return nil
	})

	// From here on the replica misses everything.
	g.replica.pause()
	if err := g.master.direct.ClientKillByFilter(t.Context(), "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	const ttl = 10 * time.Second
	mustAcquire(t, client, "lock:held", "token-of-the-first", ttl)
	waitFor(t, "the group's master granted it", func() error {
		if value, _ := g.master.value(t, "lock:held"); value != "token-of-the-first" {
			return fmt.Errorf("it holds %q", value)
		}
		return nil
	})
	g.master.crash()
	g.replica.resume()
	mustAcquire(t, client, "lock:meanwhile", "token-of-another", ttl)
	mustRelease(t, client, "lock:meanwhile", "token-of-another")
	waitState("quarantined")
	if _, held := g.replica.value(t, "lock:held"); held {
		t.Fatal("the replica knows the lock, so this test shows nothing")
	}
	until := c.proxy.metric(t, fmt.Sprintf("redlock_master_quarantine_end_timestamp_seconds{master=%q}", g.label()))
	if until == "" {
		t.Error("no metric says when the quarantine ends")
	}
	if log := c.proxy.proc.Log.String(); !strings.Contains(log, "may have forgotten locks") {
		t.Error("the log does not say that the group may have forgotten locks")
	}

	c.masters[0].crash()
	c.masters[1].crash()
	if ok, err := acquire(t.Context(), client, "lock:held", "token-of-a-second", ttl); ok {
		t.Errorf("the lock is granted a second time (%v)", err)
	}
	if ok, err := acquire(t.Context(), client, "lock:new", "token-of-a-third", ttl); ok || !noQuorum(err) {
		t.Errorf("a lock with a vote of the promoted replica: %v %v, want QUORUMLOST", ok, err)
	}
	waitState("certified")
	mustAcquire(t, client, "lock:later", "token-of-a-fourth", longTTL)

	// The old master comes back as what the Sentinels make of it: a replica.
	g.master.start(t)
	waitFor(t, "the old master is a replica", func() error {
		if info := g.master.direct.Info(t.Context(), "replication").Val(); !strings.Contains(info, "role:slave") {
			return errors.New("it is not")
		}
		return nil
	})
	mustRelease(t, client, "lock:later", "token-of-a-fourth")
	if now := state(); now != "certified" {
		t.Errorf("with its old master back the group is %s", now)
	}
}
