package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// handbookRights is the line of the handbook that makes the proxy's user on a
// master, as words of a command.
func handbookRights(t *testing.T, password string, keys []string) []any {
	t.Helper()
	readme, err := os.ReadFile("../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^    (ACL SETUSER redlock .*)$`).FindSubmatch(readme)
	if line == nil {
		t.Fatal("the handbook has no line for the proxy's user on a master")
	}
	var words []any
	for word := range strings.FieldsSeq(string(line[1])) {
		switch word {
		case ">PASSWORD":
			words = append(words, ">"+password)
		case "~lock:*":
			for _, key := range keys {
				words = append(words, "~"+key)
			}
		default:
			words = append(words, word)
		}
	}
	return words
}

// startWithLeastRights starts masters that know the proxy as the handbook says,
// and an upstream where it may do what is not dangerous. Passwords come from a
// file and from the environment.
func startWithLeastRights(t *testing.T, rules []string) (*cluster, proxyOptions) {
	t.Helper()
	c := startServers(t)
	secret := filepath.Join(t.TempDir(), "master")
	if err := os.WriteFile(secret, []byte("of the masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UPSTREAM_PASSWORD", "of the upstream")
	options := proxyOptions{rules: rules, upstream: "redis://app@" + c.upstream.addr() + "?password_env=UPSTREAM_PASSWORD"}
	user := c.upstream.direct.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">of the upstream", "~*", "&*", "+@all", "-@dangerous")
	if err := user.Err(); err != nil {
		t.Fatal(err)
	}
	for _, master := range c.masters {
		if err := master.direct.Do(t.Context(), handbookRights(t, "of the masters", rules)...).Err(); err != nil {
			t.Fatal(err)
		}
		options.masters = append(options.masters, "redis://redlock@"+master.addr()+"?password_file="+secret)
	}
	return c, options
}

// notCovered are the commands that the handbook says these rights do not cover.
var notCovered = regexp.MustCompile(`(?i)^(SORT_RO|PFDEBUG|RESTORE-ASKING|SORT .* (GET|BY) .*\*)`)

// TestLeastRights: with the rights that the handbook gives the proxy on a master
// everything works that works with all rights, and a client's script can do no
// harm there.
func TestLeastRights(t *testing.T) {
	rules := slices.Concat(lockRules, []string{"*{lock:*", "symfony_check_support_time"})
	c, options := startWithLeastRights(t, rules)
	c.proxy = c.addProxy(t, options)
	out, err := exec.Command(c.proxy.binary, "-check", "-config", c.proxy.flags[1]).CombinedOutput()
	if err != nil || strings.Contains(string(out), "does not allow") {
		t.Errorf("-check: %v\n%s", err, out)
	}
	for _, master := range c.masters {
		if clients := master.direct.ClientList(t.Context()).Val(); !strings.Contains(clients, "user=redlock") {
			t.Errorf("%s knows no proxy:\n%s", master.name, clients)
		}
	}

	plain := startRedis(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("corpus in RESP%d", protocol), func(t *testing.T) {
			d := differential{plain: plain, addr: c.proxy.addr(), protocol: protocol, states: c.waitQuorumStates}
			d.run(t, corpus())
		})
	}
	t.Run("every command with keys", func(t *testing.T) {
		d := differential{plain: plain, addr: c.proxy.addr(), protocol: 2, states: c.waitQuorumStates}
		d.run(t, slices.DeleteFunc(exampleScenarios(t, plain), func(s scenario) bool {
			return notCovered.MatchString(s.name)
		}))
	})

	other := c.addProxy(t, options)
	t.Run("wake-ups", func(t *testing.T) {
		const key, token = "lock:woken", "token-of-the-holder-1"
		channel := channelOf(key)
		waiter, holder := c.proxy.wire(t, 3), other.wire(t, 2)
		waiter.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
		waiter.ask("psubscribe redisson_* 2", "PSUBSCRIBE", "redisson_*")
		holder.hold(key)
		holder.unlock(key, "free")
		waiter.expect("message " + channel + " free")
		waiter.expect("pmessage redisson_* " + channel + " free")
		tracker := c.proxy.wire(t, 3)
		tracker.ask("OK", "CLIENT", "TRACKING", "ON", "OPTOUT")
		holder.ask("OK", "EVAL", trackedLock, "1", key, token, "60000")
		tracker.ask("-1", "EVAL", trackedLock, "1", key, "token-of-the-waiter-1", "60000")
		holder.ask("1", "EVAL", compareAndDeleteText, "1", key, token)
		tracker.expect("invalidate " + key)
	})
	t.Run("reconnecting", func(t *testing.T) {
		for _, master := range c.masters[:2] {
			if n := master.direct.ClientKillByFilter(t.Context(), "USER", "redlock").Val(); n == 0 {
				t.Errorf("no connection to %s was there to be killed", master.name)
			}
			master.pause()
		}
		holder := c.proxy.wire(t, 2)
		holder.ask("OK", "SET", "lock:again", "a token of many bytes", "NX", "PX", "60000")
		for _, master := range c.masters[:2] {
			master.resume()
		}
		waitFor(t, "all masters vote again", func() error {
			for _, master := range c.masters {
				if c.proxy.metric(t, fmt.Sprintf(`redlock_master_state{master=%q,state="certified"}`, master.addr())) != "1" {
					return fmt.Errorf("%s does not", master.name)
				}
			}
			return nil
		})
		holder.ask("1", "DEL", "lock:again")
		c.waitGone(t, "lock:again")
	})
	for _, p := range []*proxyProcess{c.proxy, other} {
		if log := p.proc.Log.String(); strings.Contains(log, "refuses CLIENT KILL") || strings.Contains(log, "NOPERM") {
			t.Errorf("a right was missed:\n%s", p.proc.Log.Tail(30))
		}
		for _, secret := range []string{"of the masters", "of the upstream"} {
			if strings.Contains(p.proc.Log.String(), secret) {
				t.Errorf("the log shows a password")
			}
		}
	}
}

// TestScriptsCannotHarmMasters: what a client's script on a lock key may not
// do, and that it leaves the masters and their votes as they were.
func TestScriptsCannotHarmMasters(t *testing.T) {
	c, options := startWithLeastRights(t, []string{"lock:*"})
	c.proxy = c.addProxy(t, options)
	client := c.proxy.wire(t, 2)
	client.ask("OK", "SET", "lock:kept", "a token of many bytes", "NX", "PX", "60000")
	for _, command := range []string{
		"FLUSHALL", "FLUSHDB", "SWAPDB', '0', '1", "CONFIG', 'SET', 'maxmemory', '1", "CONFIG', 'GET', '*", "SHUTDOWN', 'NOSAVE", "REPLICAOF', 'NO', 'ONE",
		"DEBUG', 'JMAP", "MIGRATE', '127.0.0.1', '1', 'lock:kept', '0', '1", "KEYS', '*", "ACL', 'SETUSER', 'x", "FUNCTION', 'FLUSH",
		"DEL', 'app", "SET', 'app', '1", "SAVE", "MODULE', 'LIST", "CLIENT', 'KILL', 'TYPE', 'normal",
	} {
		reply, err := client.do("EVAL", "return redis.call('"+command+"')", "1", "lock:harm")
		if err != nil || reply[0] != '-' {
			t.Errorf("%s: %q %v", command, reply, err)
		}
	}
	if n := c.holders(t, "lock:kept", "a token of many bytes"); n < quorum {
		t.Errorf("the lock is on %d masters only", n)
	}
	for _, master := range c.masters {
		state := fmt.Sprintf(`redlock_master_state{master=%q,state="certified"}`, master.addr())
		if got := c.proxy.metric(t, state); got != "1" {
			t.Errorf("%s does not vote any more", master.name)
		}
		if maxmemory := master.direct.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; maxmemory != "0" {
			t.Errorf("%s has maxmemory %s", master.name, maxmemory)
		}
	}
	client.ask("OK", "SET", "app", "1")
	if reply, err := client.do("FLUSHALL"); !strings.HasPrefix(string(reply), "-NOPERM") {
		t.Errorf("FLUSHALL at the upstream, which forbids it: %q %v", reply, err)
	}
	client.ask("1", "DEL", "lock:kept")
}
