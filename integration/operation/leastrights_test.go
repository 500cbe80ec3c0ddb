package operation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
)

// handbookRights returns the handbook's line that makes the proxy's user on a master, as
// the words of a command.
func handbookRights(t *testing.T, password string, keys []string) []any {
	t.Helper()
	page, err := os.ReadFile("../deploy/INSTALL.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^    (ACL SETUSER redlock .*)$`).FindSubmatch(page)
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

// startWithLeastRights starts masters where the proxy has the rights from the handbook, and
// an upstream where it has all commands but the dangerous ones. The passwords come from a
// file and from the environment.
func startWithLeastRights(t *testing.T, rules []string) (*rig.Cluster, rig.Options) {
	t.Helper()
	c := rig.StartServers(t)
	secret := filepath.Join(t.TempDir(), "master")
	if err := os.WriteFile(secret, []byte("of the masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := rig.Options{Rules: rules, Upstream: "redis://app@" + c.Upstream.Addr() + "?password_env=UPSTREAM_PASSWORD"}
	user := c.Upstream.Direct.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">"+passwordOfTheUpstream, "~*", "&*", "+@all", "-@dangerous")
	if err := user.Err(); err != nil {
		t.Fatal(err)
	}
	for _, master := range c.Masters {
		if err := master.Direct.Do(t.Context(), handbookRights(t, "of the masters", rules)...).Err(); err != nil {
			t.Fatal(err)
		}
		options.Masters = append(options.Masters, "redis://redlock@"+master.Addr()+"?password_file="+secret)
	}
	return c, options
}

// notCovered are the commands that, as the handbook says, need more than these rights.
var notCovered = regexp.MustCompile(`(?i)^(SORT_RO|PFDEBUG|RESTORE-ASKING|SORT .* (GET|BY) .*\*)`)

// TestLeastRights: everything works with the rights that the handbook gives the proxy on a
// master. A client's script can do no harm there.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	rules := slices.Concat(rig.LockRules, []string{"*{lock:*", "symfony_check_support_time"})
	c, options := startWithLeastRights(t, rules)
	c.Proxy = c.AddProxy(t, options)
	out, err := exec.Command(c.Proxy.Binary, "-check", "-config", c.Proxy.Flags[1]).CombinedOutput()
	if err != nil || strings.Contains(string(out), "does not allow") {
		t.Errorf("-check: %v\n%s", err, out)
	}
	for _, master := range c.Masters {
		if clients := master.Direct.ClientList(t.Context()).Val(); !strings.Contains(clients, "user=redlock") {
			t.Errorf("%s knows no proxy:\n%s", master.Name, clients)
		}
	}

	plain := rig.StartServer(t, "plain")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("corpus in RESP%d", protocol), func(t *testing.T) {
			d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: protocol, States: c.WaitQuorumStates}
			d.Run(t, corpus.All())
		})
	}
	t.Run("every command with keys", func(t *testing.T) {
		d := corpus.Differential{Plain: plain, Addr: c.Proxy.Addr(), Protocol: 2, States: c.WaitQuorumStates}
		d.Run(t, slices.DeleteFunc(corpus.Examples(t, plain), func(s corpus.Scenario) bool {
			return notCovered.MatchString(s.Name)
		}))
	})

	other := c.AddProxy(t, options)
	t.Run("wake-ups", func(t *testing.T) {
		const key, token = "lock:woken", "token-of-the-holder-1"
		channel := rig.ChannelOf(key)
		waiter, holder := c.Proxy.Talk(t, 3), other.Talk(t, 2)
		waiter.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
		waiter.Ask("psubscribe redisson_* 2", "PSUBSCRIBE", "redisson_*")
		holder.Hold(key)
		holder.Unlock(key, "free")
		waiter.Expect("message " + channel + " free")
		waiter.Expect("pmessage redisson_* " + channel + " free")
		tracker := c.Proxy.Talk(t, 3)
		tracker.Ask("OK", "CLIENT", "TRACKING", "ON", "OPTOUT")
		holder.Ask("OK", "EVAL", rig.TrackedLock, "1", key, token, "60000")
		tracker.Ask("-1", "EVAL", rig.TrackedLock, "1", key, "token-of-the-waiter-1", "60000")
		holder.Ask("1", "EVAL", rig.CompareAndDeleteText, "1", key, token)
		tracker.Expect("invalidate " + key)
	})
	t.Run("reconnecting", func(t *testing.T) {
		for _, master := range c.Masters[:2] {
			if n := master.Direct.ClientKillByFilter(t.Context(), "USER", "redlock").Val(); n == 0 {
				t.Errorf("no connection to %s was there to be killed", master.Name)
			}
			master.Pause()
		}
		holder := c.Proxy.Talk(t, 2)
		holder.Ask("OK", "SET", "lock:again", "a token of many bytes", "NX", "PX", "60000")
		for _, master := range c.Masters[:2] {
			master.Resume()
		}
		rig.WaitFor(t, "all masters vote again", func() error {
			for _, master := range c.Masters {
				if c.Proxy.Metric(t, fmt.Sprintf(`redlock_master_state{master=%q,state="voting"}`, master.Addr())) != "1" {
					return fmt.Errorf("%s does not", master.Name)
				}
			}
			return nil
		})
		holder.Ask("1", "DEL", "lock:again")
		c.WaitGone(t, "lock:again")
	})
	for _, p := range []*rig.Proxy{c.Proxy, other} {
		if log := p.Proc.Log.String(); strings.Contains(log, "refuses CLIENT KILL") || strings.Contains(log, "NOPERM") {
			t.Errorf("a right was missed:\n%s", p.Proc.Log.Tail(30))
		}
		for _, secret := range []string{"of the masters", passwordOfTheUpstream} {
			if strings.Contains(p.Proc.Log.String(), secret) {
				t.Errorf("the log shows a password")
			}
		}
	}
}

// TestScriptsCannotHarmMasters: a client's script on a lock key is refused dangerous
// commands. It leaves the masters and their votes unchanged.
func TestScriptsCannotHarmMasters(t *testing.T) {
	t.Parallel()
	c, options := startWithLeastRights(t, []string{"lock:*"})
	c.Proxy = c.AddProxy(t, options)
	client := c.Proxy.Talk(t, 2)
	client.Ask("OK", "SET", "lock:kept", "a token of many bytes", "NX", "PX", "60000")
	const (
		byProxy  = "-ERR a script on lock keys must not reach into another database"
		byServer = "-ERR This Redis command is not allowed from script"
		byRights = "-QUORUMLOST " // the masters refuse it
	)
	for _, row := range []struct {
		refused  string
		commands []string
	}{
		{byProxy, []string{"FLUSHALL", "FLUSHDB", "SWAPDB', '0', '1"}},
		{byServer, []string{"CONFIG', 'SET', 'maxmemory', '1", "CONFIG', 'GET', '*", "SHUTDOWN', 'NOSAVE", "REPLICAOF', 'NO', 'ONE", "DEBUG', 'JMAP",
			"ACL', 'SETUSER', 'x", "FUNCTION', 'FLUSH", "SAVE", "MODULE', 'LIST", "CLIENT', 'KILL', 'TYPE', 'normal"}},
		{byRights, []string{"MIGRATE', '127.0.0.1', '1', 'lock:kept', '0', '1", "KEYS', '*", "DEL', 'app", "SET', 'app', '1"}},
	} {
		for _, command := range row.commands {
			reply, err := client.Do("EVAL", "return redis.call('"+command+"')", "1", "lock:harm")
			if err != nil || !strings.HasPrefix(string(reply), row.refused) {
				t.Errorf("%s: %q %v, want an error with %q", command, reply, err, row.refused)
			}
		}
	}
	if n := c.Holders(t, "lock:kept", "a token of many bytes"); n < rig.Quorum {
		t.Errorf("the lock is on %d masters only", n)
	}
	for _, master := range c.Masters {
		state := fmt.Sprintf(`redlock_master_state{master=%q,state="voting"}`, master.Addr())
		if got := c.Proxy.Metric(t, state); got != "1" {
			t.Errorf("%s does not vote any more", master.Name)
		}
		if maxmemory := master.Direct.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; maxmemory != "0" {
			t.Errorf("%s has maxmemory %s", master.Name, maxmemory)
		}
	}
	client.Ask("OK", "SET", "app", "1")
	if reply, err := client.Do("FLUSHALL"); !strings.HasPrefix(string(reply), "-NOPERM") {
		t.Errorf("FLUSHALL at the upstream, which forbids it: %q %v", reply, err)
	}
	client.Ask("1", "DEL", "lock:kept")
}
