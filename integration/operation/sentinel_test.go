package operation

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
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// sentinelGroup is a master and its replica, monitored by three Sentinels.
type sentinelGroup struct {
	name      string
	master    *rig.Server // the master at the start
	replica   *rig.Server
	sentinels []string // their addresses
	processes []*child.Process
	password  string // of the servers; the Sentinels' has a suffix
}

// startSentinelGroup returns when a failover is possible.
func startSentinelGroup(t *testing.T, name string) *sentinelGroup {
	t.Helper()
	return startSentinelGroupWith(t, name, "")
}

// startSentinelGroupWith also sets passwords on the servers and Sentinels.
func startSentinelGroupWith(t *testing.T, name, password string) *sentinelGroup {
	t.Helper()
	g := &sentinelGroup{name: name, master: rig.NewServer(t, name+" master"), replica: rig.NewServer(t, name+" replica"), password: password}
	g.replica.Config = []string{"--replicaof", "127.0.0.1", fmt.Sprint(g.master.Port), "--repl-ping-replica-period", "1"}
	if password != "" {
		for _, server := range []*rig.Server{g.master, g.replica} {
			server.Config = append(server.Config, "--requirepass", password, "--masterauth", password)
			server.Direct.Options().Password = password
		}
	}
	g.master.Start(t)
	g.replica.Start(t)
	for i := range 3 {
		port := rig.FreePort(t)
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %d 2\n"+
			"sentinel down-after-milliseconds %s 2000\nsentinel failover-timeout %s 10000\n",
			port, filepath.Dir(file), name, g.master.Port, name, name)
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
		rig.WaitFor(t, "the Sentinels know each other and the replica", func() error {
			fields, err := g.ask(i)
			if err == nil && (fields["num-other-sentinels"] != "2" || fields["num-slaves"] != "1" || fields["flags"] != "master") {
				err = fmt.Errorf("others %s, replicas %s, flags %s", fields["num-other-sentinels"], fields["num-slaves"], fields["flags"])
			}
			return err
		})
	}
	rig.WaitFor(t, "the replica has its master's data", func() error {
		if info := g.replica.Direct.Info(t.Context(), "replication").Val(); !strings.Contains(info, "master_link_status:up") {
			return errors.New(info)
		}
		return nil
	})
	return g
}

func (g *sentinelGroup) ask(i int) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
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

// label returns the group's name in metrics and logs.
func (g *sentinelGroup) label() string { return g.name + "@" + g.sentinels[0] }

// waitPromoted waits until all Sentinels name the replica.
func (g *sentinelGroup) waitPromoted(t *testing.T) {
	t.Helper()
	for i := range g.sentinels {
		rig.WaitFor(t, "the replica is promoted", func() error {
			fields, err := g.ask(i)
			if err == nil && fields["port"] != fmt.Sprint(g.replica.Port) {
				err = errors.New("the master is still at port " + fields["port"])
			}
			return err
		})
	}
}

// TestSentinelUpstream: the upstream fails over under load. The proxy disconnects clients of
// the old master, and clients that connect afterwards reach the new one. Locks are not
// disturbed.
func TestSentinelUpstream(t *testing.T) {
	t.Parallel()
	g := startSentinelGroup(t, "app")
	c := rig.StartCluster(t, rig.Options{Upstream: g.url(), LogLevel: "info", More: "upstream_connections: own\n"})
	// A session ends together with its own upstream connection. So the lock clients, which
	// must not be disturbed, have connections of their own.
	client, locks := c.Proxy.Client(t), c.Proxy.Client(t)
	if err := client.Set(t.Context(), "plain", "before", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if value, ok := g.master.Value(t, "plain"); value != "before" || !ok {
		t.Fatalf("the master holds %q", value)
	}
	idle := rig.Dial(t, c.Proxy.Addr(), 3)
	idle.ExpectReply(t, "$6\r\nbefore\r\n", "GET", "plain")
	rig.WaitFor(t, "the replica has it", func() error {
		if value, _ := g.replica.Value(t, "plain"); value != "before" {
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
				if ok, err := rig.Acquire(t.Context(), locks, key, token, rig.LongTTL); err != nil || !ok {
					t.Errorf("a lock during the failover: %v %v", ok, err)
				}
				if ok, err := rig.Release(t.Context(), locks, key, token); err != nil || !ok {
					t.Errorf("a release during the failover: %v %v", ok, err)
				}
				// An error is right while there is no master.
				_ = client.Set(ctx, "load", i, 0).Err()
			}
		})
	}
	g.master.Kill()
	if rest := idle.ExpectEnd(t); len(rest) > 0 {
		t.Errorf("a client of the old master got %q", rest)
	}
	g.waitPromoted(t)
	rig.WaitFor(t, "the new master gets the writes", func() error {
		return client.Set(t.Context(), "plain", "after", 0).Err()
	})
	if value, _ := g.replica.Value(t, "plain"); value != "after" {
		t.Errorf("the new master holds %q", value)
	}

	// Now a failover on request: the old master lives on as a replica.
	g.master.Config = g.replica.Config
	g.master.Config[2] = fmt.Sprint(g.replica.Port)
	g.master.Start(t)
	held := rig.Dial(t, c.Proxy.Addr(), 2)
	held.ExpectReply(t, "$5\r\nafter\r\n", "GET", "plain")
	rig.WaitFor(t, "the Sentinels know the old master as a replica", func() error {
		fields, err := g.ask(0)
		if err == nil && (fields["num-slaves"] != "1" || fields["flags"] != "master") {
			err = errors.New(fields["num-slaves"] + " replicas, flags " + fields["flags"])
		}
		if err == nil && !strings.Contains(g.master.Direct.Info(t.Context(), "replication").Val(), "master_link_status:up") {
			err = errors.New("it is not in step")
		}
		return err
	})
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: g.sentinels[0], MaxRetries: -1, DisableIdentity: true})
	defer sentinel.Close()
	rig.WaitFor(t, "a failover begins", func() error { return sentinel.Failover(t.Context(), g.name).Err() })
	if rest := held.ExpectEnd(t); len(rest) > 0 {
		t.Errorf("a client of the demoted master got %q", rest)
	}
	rig.WaitFor(t, "the first master gets the writes again", func() error {
		if err := client.Set(t.Context(), "plain", "again", 0).Err(); err != nil {
			return err
		}
		if value, _ := g.master.Value(t, "plain"); value != "again" {
			return fmt.Errorf("it holds %q", value)
		}
		return nil
	})
}

// TestSentinelCheck: -check shows the Sentinels' answers, and warns if too few Sentinels
// answer. The servers and the Sentinels have different passwords.
func TestSentinelCheck(t *testing.T) {
	t.Parallel()
	g := startSentinelGroupWith(t, "app", "hunter2")
	c := rig.StartCluster(t, rig.Options{Upstream: g.url(), LogLevel: "warn", MasterTimeout: 300 * time.Millisecond})
	check := func() string {
		proc, err := child.Start("check", c.Proxy.Binary, "-check", "-config", c.Proxy.Flags[1])
		if err != nil {
			t.Fatal(err)
		}
		<-proc.Done
		return proc.Log.String()
	}
	expect := func(answering int, more string) {
		t.Helper()
		managed := fmt.Sprintf("upstream (%s) is managed by 3 Sentinels, of which %d answer: the master is %s (named by %d), with 1 replica",
			g.label(), answering, g.master.Addr(), answering)
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
	// The proxy can still make new connections.
	rig.Dial(t, c.Proxy.Addr(), 2).ExpectReply(t, "+OK\r\n", "SET", "plain", "1")
	if value, _ := g.master.Value(t, "plain"); value != "1" {
		t.Errorf("the master holds %q", value)
	}
}

// TestSentinelLockMaster: one of five masters is a group that fails over. The promoted
// replica lacks a lock that the old master had granted, so it begins in quarantine. Nobody
// gets that lock twice, even with two other masters gone. Locks go on with the others. The
// new master votes after its quarantine.
func TestSentinelLockMaster(t *testing.T) {
	t.Parallel()
	g := startSentinelGroup(t, "locks")
	c := rig.StartServers(t)
	c.Masters = c.Masters[:4]
	options := rig.Options{RestartDelay: 5 * time.Second, MaxQuarantine: 28 * time.Second, MasterTimeout: time.Second, LogLevel: "info", Masters: []string{g.url()}}
	for _, master := range c.Masters {
		options.Masters = append(options.Masters, master.URL())
	}
	c.Proxy = c.AddProxy(t, options)
	client := c.Proxy.Client(t)
	state := func() string { return c.Proxy.StateOf(t, g.label()) }
	waitState := func(want string) {
		t.Helper()
		rig.WaitFor(t, "the group is "+want, func() error {
			if now := state(); now != want {
				return errors.New("it is " + now)
			}
			return nil
		})
	}
	waitState("voting")
	rig.WaitFor(t, "the replica has the marker", func() error {
		if _, ok := g.replica.Value(t, "redlock-proxy:master"); !ok {
			return errors.New("it has none")
		}
		return nil
	})

	// From here on the replica receives nothing.
	g.replica.Pause()
	if err := g.master.Direct.ClientKillByFilter(t.Context(), "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	const ttl = 25 * time.Second // it ends before the promoted server votes
	rig.MustAcquire(t, client, "lock:held", "token-of-the-first", ttl)
	rig.WaitFor(t, "the group's master granted it", func() error {
		if value, _ := g.master.Value(t, "lock:held"); value != "token-of-the-first" {
			return fmt.Errorf("it holds %q", value)
		}
		return nil
	})
	g.master.Kill()
	g.replica.Resume()
	rig.MustAcquire(t, client, "lock:meanwhile", "token-of-another", ttl)
	rig.MustRelease(t, client, "lock:meanwhile", "token-of-another")
	waitState("quarantined")
	if _, held := g.replica.Value(t, "lock:held"); held {
		t.Fatal("the replica knows the lock, so this test shows nothing")
	}
	until := c.Proxy.Metric(t, fmt.Sprintf("redlock_master_quarantine_end_timestamp_seconds{master=%q}", g.label()))
	if until == "" {
		t.Error("no metric says when the quarantine ends")
	}
	if log := c.Proxy.Proc.Log.String(); !strings.Contains(log, "may have forgotten locks") {
		t.Error("the log does not say that the group may have forgotten locks")
	}

	c.Masters[0].Kill()
	c.Masters[1].Kill()
	if ok, err := rig.Acquire(t.Context(), client, "lock:held", "token-of-a-second", ttl); ok || !rig.NoQuorum(err) {
		t.Errorf("a lock that is held: %v %v, want QUORUMLOST", ok, err)
	}
	if ok, err := rig.Acquire(t.Context(), client, "lock:new", "token-of-a-third", ttl); ok || !rig.NoQuorum(err) {
		t.Errorf("a lock with a vote of the promoted replica: %v %v, want QUORUMLOST", ok, err)
	}
	waitState("voting")
	rig.MustAcquire(t, client, "lock:later", "token-of-a-fourth", rig.LongTTL)

	// The old master comes back. The Sentinels make it a replica.
	g.master.Start(t)
	rig.WaitFor(t, "the old master is a replica", func() error {
		if info := g.master.Direct.Info(t.Context(), "replication").Val(); !strings.Contains(info, "role:slave") {
			return errors.New("it is not")
		}
		return nil
	})
	rig.MustRelease(t, client, "lock:later", "token-of-a-fourth")
	if now := state(); now != "voting" {
		t.Errorf("with its old master back the group is %s", now)
	}
}
