package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/work"

	"github.com/redis/go-redis/v9"
)

const (
	migrationLease      = time.Second
	migrationQuarantine = 10 * time.Second // the longest lease, and the time in which a busy machine reloads both proxies
)

// TestMigration: an application whose clients lock at one Redis moves to the proxies in the
// README's steps. No two clients ever hold the lock at once: while some lock there and some
// through a proxy, while one proxy after the other gets the lock rule, after that, and on
// the way back. The migration forgets the first client, which then locks nowhere.
func TestMigration(t *testing.T) {
	t.Parallel()
	w := migrate(t, true)
	if held := w.Failures(1, 2); !slices.ContainsFunc(held, func(f work.Failure) bool { return strings.HasPrefix(f.Err.Error(), "TRYAGAIN ") }) {
		t.Error("nobody was asked to wait for the locks at the old Redis to end")
	}
	w.Heard(t, w.Failures(1, 2), "TRYAGAIN ")
	w.Check(t, "")
}

// TestMigrationFindsClientsLeftBehind: a client that still reaches the old Redis is a second
// holder. That is why the migration closes the way there, and TestMigration must be able to
// detect it.
func TestMigrationFindsClientsLeftBehind(t *testing.T) {
	t.Parallel()
	w := migrate(t, false)
	rig.WaitFor(t, "a client that locks at the old Redis and one that locks on the masters meet", func() error {
		if !w.Breached() {
			return fmt.Errorf("not yet")
		}
		return nil
	})
}

// migrate follows the README, step by step, while all clients work. Without closing, it ends when clients lock on the masters.
func migrate(t *testing.T, closing bool) *work.Work {
	c := rig.StartServers(t)
	old := c.Upstream
	for _, user := range []string{"proxy", "operator"} {
		if err := old.Direct.Do(t.Context(), "ACL", "SETUSER", user, "on", ">"+user, "~*", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	operator := redis.NewClient(&redis.Options{Addr: old.Addr(), Username: "operator", Password: "operator", MaxRetries: -1})
	t.Cleanup(func() { operator.Close() })

	// First the proxies learn: every lock is still at the old Redis.
	options := c.With(rig.Options{
		Learn: true, MasterTimeout: 500 * time.Millisecond, RestartDelay: 2100 * time.Millisecond, MaxQuarantine: migrationQuarantine,
	})
	options.Upstream = strings.Replace(options.Upstream, "redis://", "redis://proxy:proxy@", 1)
	proxies := []*rig.Proxy{rig.StartProxy(t, options), rig.StartProxy(t, options)}
	const clients, atOld = 8, 0
	w := work.Start(t, work.Options{At: append([]string{old.Addr()}, work.Through(proxies...)...), Clients: clients, Longest: migrationLease, Careless: true})
	var moved []int
	for i := range clients {
		w.Move(i, atOld)
	}
	w.EachHolds(t, 0, 1, 2)
	for i := 1; i < clients; i++ {
		w.Move(i, 1+i%2)
		w.EachHolds(t, i)
		moved = append(moved, i)
	}

	// From now on nobody may reach the old Redis except through the proxies.
	if closing {
		for _, command := range [][]any{{"ACL", "SETUSER", "default", "off"}, {"CLIENT", "KILL", "USER", "default"}} {
			if err := operator.Do(t.Context(), command...).Err(); err != nil {
				t.Fatalf("%v: %v", command, err)
			}
		}
	}
	forgotten := w.Granted(0)

	// One proxy after the other gets the rule that the proxies have found. The last must get
	// it within max_quarantine less the longest lease.
	key := work.Styles[0].Key
	options.Learn = false
	rig.WaitFor(t, "the rule", func() error { // their scripts are unknown here, so that it takes ten seconds
		if options.Rules = proxies[0].Unruled(t); !slices.Equal(options.Rules, []string{key}) {
			return fmt.Errorf("the proxy found the rules %q", options.Rules)
		}
		return nil
	})
	move := func() {
		for _, p := range proxies {
			p.MoveKeys(t, options)
			rig.Pause(t.Context(), time.Second)
		}
	}
	move()
	rig.WaitFor(t, "the lock is had on the masters", func() error {
		held := 0
		for _, master := range c.Masters {
			if _, there := master.Value(t, key); there {
				held++
			}
		}
		if held < rig.Quorum {
			return fmt.Errorf("%d hold it", held)
		}
		return nil
	})
	if !closing {
		return w
	}
	w.EachHolds(t, moved...)

	// This is the way back. The proxies hold back keys that leave the masters for
	// restart_delay, which must now be long enough to reload both proxies.
	options.Learn, options.RestartDelay = true, migrationQuarantine
	move()
	rig.WaitFor(t, "the lock is had at the old Redis", func() error { return operator.Get(t.Context(), key).Err() })
	w.EachHolds(t, moved...)
	if w.Granted(0) > forgotten+1 { // it may have had an answer on the way
		t.Error("a client that was shut out at the old Redis still locks there")
	}
	return w
}
