package operation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestMigration: an application whose clients lock at one Redis moves to the proxies in the
// README's steps. No two clients ever hold the lock at once: while some lock there and some
// through a proxy, while one proxy after the other gets the lock rule, after that, and on
// the way back.
func TestMigration(t *testing.T) {
	t.Parallel()
	m := startMigration(t)
	m.move(true)
	if len(m.register.Breaches) > 0 {
		t.Errorf("%d times two clients held the lock, first: %s", len(m.register.Breaches), m.register.Breaches[0].What)
	}
	for i, client := range m.clients {
		for phase, name := range migrationPhases {
			if client.granted[phase].Load() == 0 && !(client.forgotten && phase != lockedDirectly) {
				t.Errorf("client %d never held the lock %s", i, name)
			}
		}
	}
	if m.heldBack.Load() == 0 {
		t.Error("nobody was asked to wait for the locks at the old Redis to end")
	}
	if forgotten := m.clients[0]; forgotten.granted[lockedOnMasters].Load()+forgotten.granted[lockedThereAgain].Load() > 0 {
		t.Error("a client that was shut out at the old Redis still locks there")
	}
}

// TestMigrationFindsClientsLeftBehind: a client that still reaches the old Redis is a second
// holder. That is why the migration closes the way there, and TestMigration must be able to
// detect it.
func TestMigrationFindsClientsLeftBehind(t *testing.T) {
	t.Parallel()
	startMigration(t).move(false)
}

// met tells whether two clients have held the lock at once.
func (m *migration) met() error {
	m.register.Mu.Lock()
	defer m.register.Mu.Unlock()
	if len(m.register.Breaches) == 0 {
		return errors.New("not yet")
	}
	return nil
}

// The phases of the migration: where a client's locks are.
const (
	lockedDirectly = iota
	lockedThroughProxy
	lockedOnMasters
	lockedThereAgain
)

var migrationPhases = [...]string{
	"at the old Redis directly", "at the old Redis through a proxy", "on the masters", "at the old Redis again",
}

const (
	migrationLease      = time.Second
	migrationQuarantine = 10 * time.Second // the longest lease, and the time in which a busy machine reloads both proxies
)

type migration struct {
	t        *testing.T
	servers  *rig.Cluster // upstream is the old Redis
	operator *redis.Client
	register *history.Register
	clients  []*migrant
	phase    atomic.Int32
	heldBack atomic.Int64
}

// migrant is a process of the application. The migration forgets the first one.
type migrant struct {
	id        int
	forgotten bool
	redis     atomic.Pointer[redis.Client]
	direct    *redis.Client
	granted   [len(migrationPhases)]atomic.Int64
}

func startMigration(t *testing.T) *migration {
	m := &migration{t: t, servers: rig.StartServers(t), register: &history.Register{Key: "lock:migrated"}}
	old := m.servers.Upstream
	for _, user := range []string{"proxy", "operator"} {
		if err := old.Direct.Do(t.Context(), "ACL", "SETUSER", user, "on", ">"+user, "~*", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	connect := func(addr, user string) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: user, MaxRetries: -1, DialerRetries: 1, PoolSize: 2})
		t.Cleanup(func() { client.Close() })
		return client
	}
	m.operator = connect(old.Addr(), "operator")
	for i := range 8 {
		client := &migrant{id: i, forgotten: i == 0, direct: connect(old.Addr(), "")}
		client.redis.Store(client.direct)
		m.clients = append(m.clients, client)
	}
	return m
}

// move follows the README, step by step, while all clients work.
func (m *migration) move(closing bool) {
	t := m.t
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	for _, client := range m.clients {
		working.Go(func() { m.work(ctx, client) })
	}
	m.eachHeld(lockedDirectly, m.clients)

	// First the proxies learn: every lock is still at the old Redis.
	options := m.servers.With(rig.Options{
		Learn: true, MasterTimeout: 500 * time.Millisecond, RestartDelay: 2100 * time.Millisecond, MaxQuarantine: migrationQuarantine,
	})
	options.Upstream = strings.Replace(options.Upstream, "redis://", "redis://proxy:proxy@", 1)
	proxies := []*rig.Proxy{rig.StartProxy(t, options), rig.StartProxy(t, options)}
	m.phase.Store(lockedThroughProxy)
	for i, client := range m.clients[1:] {
		client.redis.Store(proxies[i%2].Client(t))
		m.eachHeld(lockedThroughProxy, m.clients[i+1:i+2])
	}

	// From now on nobody may reach the old Redis except through the proxies.
	if closing {
		for _, command := range [][]any{{"ACL", "SETUSER", "default", "off"}, {"CLIENT", "KILL", "USER", "default"}} {
			if err := m.operator.Do(t.Context(), command...).Err(); err != nil {
				t.Fatalf("%v: %v", command, err)
			}
		}
	}

	// One proxy after the other gets the rule that the proxies have found. The last must get
	// it within max_quarantine less the longest lease.
	options.Learn = false
	rig.WaitFor(t, "the rule", func() error { // their scripts are unknown here, so that it takes ten seconds
		if options.Rules = proxies[0].Unruled(t); !slices.Equal(options.Rules, []string{m.register.Key}) {
			return fmt.Errorf("the proxy found the rules %q", options.Rules)
		}
		return nil
	})
	for _, p := range proxies {
		p.MoveKeys(t, options)
		rig.Pause(ctx, time.Second)
	}
	rig.WaitFor(t, "the lock is had on the masters", func() error {
		if holdersOf(t, m.servers, m.register.Key) >= rig.Quorum {
			return nil
		}
		return fmt.Errorf("no quorum holds it")
	})
	m.phase.Store(lockedOnMasters)
	m.eachHeld(lockedOnMasters, m.clients[1:])
	if !closing {
		rig.WaitFor(t, "a client that locks at the old Redis and one that locks on the masters meet", m.met)
		return
	}

	// This is the way back. The proxies hold back keys that leave the masters for
	// restart_delay, which must now be long enough to reload both proxies.
	options.Learn, options.RestartDelay = true, migrationQuarantine
	for _, p := range proxies {
		p.MoveKeys(t, options)
		rig.Pause(ctx, time.Second)
	}
	rig.WaitFor(t, "the lock is had at the old Redis", func() error {
		return m.operator.Get(t.Context(), m.register.Key).Err()
	})
	m.phase.Store(lockedThereAgain)
	m.eachHeld(lockedThereAgain, m.clients[1:])
}

// holdersOf counts the masters that have key, whatever its value.
func holdersOf(t testing.TB, c *rig.Cluster, key string) (count int) {
	t.Helper()
	for _, master := range c.Masters {
		if _, there := master.Value(t, key); there {
			count++
		}
	}
	return count
}

// eachHeld waits until each of the clients has held the lock in this phase.
func (m *migration) eachHeld(phase int, clients []*migrant) {
	m.t.Helper()
	rig.WaitFor(m.t, "the lock is held "+migrationPhases[phase], func() error {
		for _, client := range clients {
			if client.granted[phase].Load() == 0 {
				return fmt.Errorf("not yet by client %d", client.id)
			}
		}
		return nil
	})
}

// work takes the lock, stays for a while, and releases it or dies with it.
func (m *migration) work(over context.Context, client *migrant) {
	random := rand.New(rand.NewPCG(uint64(client.id), 0))
	for turn := 0; over.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%d-turn-%010d", client.id, turn)
		connection := client.redis.Load()
		asked := time.Now()
		ok, err := rig.Acquire(m.t.Context(), connection, m.register.Key, token, migrationLease)
		if err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN ") {
			m.heldBack.Add(1)
		}
		until := asked.Add(migrationLease - history.LostToDrift(migrationLease))
		if err == nil && ok && time.Now().Before(until) {
			m.count(client, connection)
			h := m.register.Enter(client.id, token, until)
			stay := rig.Between(random, 0, 20*time.Millisecond)
			if random.IntN(20) == 0 {
				stay = migrationLease / 2
			}
			rig.Pause(over, min(stay, time.Until(until)))
			m.register.Write(h)
			if dies := random.IntN(40) == 0; dies {
				rig.Pause(over, time.Until(until))
				m.register.Leave(h)
				continue
			}
			m.register.Leave(h)
			_, _ = rig.Release(m.t.Context(), connection, m.register.Key, token) // if the proxy holds the key back, the lock expires by itself
		}
		rig.Pause(over, rig.Between(random, 2*time.Millisecond, 20*time.Millisecond))
	}
}

// count notes where the client has the lock. A lock that it took at the old Redis, before
// the masters had their first lock, does not count for the latest phase.
func (m *migration) count(client *migrant, connection *redis.Client) {
	phase := int(m.phase.Load())
	if phase == lockedThroughProxy && connection == client.direct {
		phase = lockedDirectly
	}
	client.granted[phase].Add(1)
}
