package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestMigration: an application whose clients lock at one Redis all the time
// moves to the proxies as the README says, and no two of them ever hold the
// lock at once: while some lock there and some through a proxy, while the
// proxies are given the lock rule one after the other, after that, and on the
// way back.
func TestMigration(t *testing.T) {
	m := startMigration(t)
	m.move(true)
	if len(m.register.breaches) > 0 {
		t.Errorf("%d times two clients held the lock, first: %s", len(m.register.breaches), m.register.breaches[0].what)
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

// TestMigrationFindsClientsLeftBehind: a client that still reaches the old Redis
// is a second holder, which is why the way is closed, and what the test above
// must be able to see.
func TestMigrationFindsClientsLeftBehind(t *testing.T) {
	m := startMigration(t)
	m.move(false)
	if len(m.register.breaches) == 0 {
		t.Error("a client that locks at the old Redis and those that lock on the masters never met")
	}
}

// What a client's locks are, as the migration goes on.
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
	migrationQuarantine = 4 * time.Second // the longest lease, and the time to reload both proxies
)

type migration struct {
	t        *testing.T
	servers  *cluster // upstream is the old Redis
	operator *redis.Client
	register *register
	clients  []*migrant
	phase    atomic.Int32
	heldBack atomic.Int64
}

// migrant is an application's process. The first is forgotten in the migration.
type migrant struct {
	id        int
	forgotten bool
	redis     atomic.Pointer[redis.Client]
	direct    *redis.Client
	granted   [len(migrationPhases)]atomic.Int64
}

func startMigration(t *testing.T) *migration {
	redis.SetLogger(silence{})
	m := &migration{t: t, servers: startServers(t), register: &register{key: "lock:migrated"}}
	old := m.servers.upstream
	for _, user := range []string{"proxy", "operator"} {
		if err := old.direct.Do(t.Context(), "ACL", "SETUSER", user, "on", ">"+user, "~*", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	connect := func(addr, user string) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: user, MaxRetries: -1, DialerRetries: 1, PoolSize: 2})
		t.Cleanup(func() { client.Close() })
		return client
	}
	m.operator = connect(old.addr(), "operator")
	for i := range 8 {
		client := &migrant{id: i, forgotten: i == 0, direct: connect(old.addr(), "")}
		client.redis.Store(client.direct)
		m.clients = append(m.clients, client)
	}
	return m
}

// move does what the README says, step by step, with all clients at work.
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

	// Proxies with a rule that no key matches: every lock is still the old Redis's.
	options := m.servers.with(proxyOptions{
		rules: []string{"no-key-is-a-lock-yet"}, masterTimeout: 500 * time.Millisecond, restartDelay: time.Second, maxQuarantine: migrationQuarantine,
	})
	options.upstream = strings.Replace(options.upstream, "redis://", "redis://proxy:proxy@", 1)
	proxies := []*proxyProcess{startProxy(t, options), startProxy(t, options)}
	m.phase.Store(lockedThroughProxy)
	for i, client := range m.clients[1:] {
		client.redis.Store(proxies[i%2].client(t))
		m.eachHeld(lockedThroughProxy, m.clients[i+1:i+2])
	}

	// Nobody may reach the old Redis past the proxies any more.
	if closing {
		for _, command := range [][]any{{"ACL", "SETUSER", "default", "off"}, {"CLIENT", "KILL", "USER", "default"}} {
			if err := m.operator.Do(t.Context(), command...).Err(); err != nil {
				t.Fatalf("%v: %v", command, err)
			}
		}
	}

	// The lock rule, on one proxy after the other, within the time that
	// max_quarantine leaves beyond the longest lease.
	options.rules = []string{"lock:*"}
	for _, p := range proxies {
		p.moveKeys(t, options)
		pause(ctx, time.Second)
	}
	waitFor(t, "the lock is had on the masters", func() error {
		if m.servers.holdersOf(t, m.register.key) >= quorum {
			return nil
		}
		return fmt.Errorf("no quorum holds it")
	})
	m.phase.Store(lockedOnMasters)
	m.eachHeld(lockedOnMasters, m.clients[1:])
	pause(ctx, 2*time.Second)
	if !closing {
		return
	}

	// The way back. Keys that leave the masters are held back for restart_delay,
	// which must now be long enough to reload both.
	options.rules, options.restartDelay = []string{"no-key-is-a-lock-any-more"}, migrationQuarantine
	for _, p := range proxies {
		p.moveKeys(t, options)
		pause(ctx, time.Second)
	}
	waitFor(t, "the lock is had at the old Redis", func() error {
		return m.operator.Get(t.Context(), m.register.key).Err()
	})
	m.phase.Store(lockedThereAgain)
	m.eachHeld(lockedThereAgain, m.clients[1:])
}

// holdersOf counts the masters that hold key, whatever its value.
func (c *cluster) holdersOf(t testing.TB, key string) (count int) {
	t.Helper()
	for _, master := range c.masters {
		if _, there := master.value(t, key); there {
			count++
		}
	}
	return count
}

// eachHeld waits until each of the clients has held the lock in that phase.
func (m *migration) eachHeld(phase int, clients []*migrant) {
	m.t.Helper()
	waitFor(m.t, "the lock is held "+migrationPhases[phase], func() error {
		for _, client := range clients {
			if client.granted[phase].Load() == 0 {
				return fmt.Errorf("not yet by client %d", client.id)
			}
		}
		return nil
	})
}

// work takes the lock, stays for a while, and gives it back or dies with it.
func (m *migration) work(over context.Context, client *migrant) {
	random := rand.New(rand.NewPCG(uint64(client.id), 0))
	for turn := 0; over.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%d-turn-%010d", client.id, turn)
		connection := client.redis.Load()
		asked := time.Now()
		ok, err := acquire(m.t.Context(), connection, m.register.key, token, migrationLease)
		if err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN ") {
			m.heldBack.Add(1)
		}
		until := asked.Add(migrationLease - lostToDrift(migrationLease))
		if err == nil && ok && time.Now().Before(until) {
			m.count(client, connection)
			h := m.register.enter(client.id, token, until)
			stay := between(random, 0, 20*time.Millisecond)
			if random.IntN(20) == 0 {
				stay = migrationLease / 2
			}
			pause(over, min(stay, time.Until(until)))
			m.register.write(h)
			if dies := random.IntN(40) == 0; dies {
				pause(over, time.Until(until))
				m.register.leave(h)
				continue
			}
			m.register.leave(h)
			_, _ = release(m.t.Context(), connection, m.register.key, token) // held back, it ends by itself
		}
		pause(over, between(random, 2*time.Millisecond, 20*time.Millisecond))
	}
}

// count notes where the client has the lock. What was taken at the old Redis
// before the masters had their first lock is not yet of the last phase.
func (m *migration) count(client *migrant, connection *redis.Client) {
	phase := int(m.phase.Load())
	if phase == lockedThroughProxy && connection == client.direct {
		phase = lockedDirectly
	}
	client.granted[phase].Add(1)
}
