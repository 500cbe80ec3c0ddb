package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// A pattern is lock code that applications write by hand, without a library: a story of
// stories/handwritten.txt, which says what its lines are.
type pattern struct {
	name     string
	keys     []string
	shared   bool
	protocol int // 0: the client's own choice
	// holder makes one client of the lock, which enters and leaves it again and again.
	holder func(client *redis.Client, me string) rig.Contender
}

func patterns(t *testing.T) []pattern {
	t.Helper()
	text := corpus.Read(rig.ReadFile(t, "conformance/stories/handwritten.txt"))
	all := []pattern{{name: "a timestamp, GET, GETSET, DEL", keys: []string{"lock:timestamp"}, shared: true,
		holder: func(client *redis.Client, me string) rig.Contender {
			lock := &timestampLock{client: client, key: "lock:timestamp", id: int(crc32.ChecksumIEEE([]byte(me)) % 1_000_000)}
			return rig.Contender{Take: lock.take, Give: lock.give}
		}}}
	for _, story := range text.Stories {
		p := pattern{name: story.Title}
		code := map[string][]string{}
		for _, line := range story.Lines {
			switch word, rest, _ := strings.Cut(line, " "); word {
			case "keys":
				p.keys = strings.Fields(rest)
			case "shared":
				p.shared = true
			case "RESP2":
				p.protocol = 2
			case "take", "undo", "renew", "give":
				code[word] = append(code[word], rest)
			default:
				t.Fatalf("%s: nobody knows %q", story.Title, line)
			}
		}
		p.holder = func(client *redis.Client, me string) rig.Contender { return contender(text, code, client, me) }
		all = append(all, p)
	}
	return all
}

// contender makes a client of a pattern's lines.
func contender(text corpus.Theme, code map[string][]string, client *redis.Client, me string) rig.Contender {
	end, ended := make(chan struct{}), make(chan struct{})
	run := func(ctx context.Context, line string) (granted bool, err error) {
		command, wanted, _ := strings.Cut(strings.ReplaceAll(line, "{me}", me), " -> ")
		reply, err := send(ctx, client, text.Words(command))
		if reply == nil {
			reply = "nil"
		}
		want, refused, _ := strings.Cut(wanted, " or ")
		granted = fmt.Sprint(reply) == want
		if err == nil && !granted && (refused == "" || fmt.Sprint(reply) != refused) {
			err = fmt.Errorf("%s is answered %v, want %s", command, reply, wanted)
		}
		return granted, err
	}
	all := func(ctx context.Context, lines []string) error {
		for _, line := range lines {
			if _, err := run(ctx, line); err != nil {
				return err
			}
		}
		return nil
	}
	return rig.Contender{
		Take: func(ctx context.Context) (bool, error) {
			for i, line := range code["take"] {
				ok, err := run(ctx, line)
				if !ok && i > 0 {
					err = errors.Join(err, all(ctx, code["undo"]))
				}
				if !ok || err != nil {
					return false, err
				}
			}
			if len(code["renew"]) == 0 {
				return true, nil
			}
			end, ended = make(chan struct{}), make(chan struct{})
			go func(end, ended chan struct{}) {
				defer close(ended)
				for { // so often that renewals and releases coincide
					select {
					case <-end:
						return
					case <-time.After(2 * time.Millisecond):
						_, _ = send(ctx, client, text.Words(strings.ReplaceAll(code["renew"][0], "{me}", me)))
					}
				}
			}(end, ended)
			return true, nil
		},
		Give: func(ctx context.Context) error {
			err := all(ctx, code["give"])
			if len(code["renew"]) > 0 {
				close(end)
				<-ended
			}
			return err
		},
	}
}

// TestHandwrittenLocks: every pattern keeps its lock on a quorum while it is held, refuses
// a second client, and leaves nothing behind. It lets in only one of many contending
// clients at a time.
func TestHandwrittenLocks(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: []string{"lock:*"}})
	proxies := []*rig.Proxy{c.Proxy, c.AddProxy(t, rig.Options{Rules: []string{"lock:*"}})}
	for _, pattern := range patterns(t) {
		t.Run(pattern.name, func(t *testing.T) {
			reached := proxies
			if pattern.shared {
				reached = proxies[:1]
			}
			var clients []*redis.Client
			for _, proxy := range reached {
				client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), Protocol: pattern.protocol, MaxRetries: -1,
					ReadTimeout: rig.Patience, PoolSize: 100})
				t.Cleanup(func() { client.Close() })
				clients = append(clients, client)
			}
			pattern.live(t, c, clients)
			const contenders, turns = 20, 5
			var all []rig.Contender
			for i := range contenders {
				all = append(all, pattern.holder(clients[i%len(clients)], fmt.Sprintf("token-of-client-%d", i)))
			}
			rig.Contend(t, pattern.name, all, turns)
			pattern.waitOn(t, c, 0, 0)
		})
	}
}

// live takes one lock through its whole life with two clients.
func (p pattern) live(t *testing.T, c *rig.Cluster, clients []*redis.Client) {
	t.Helper()
	first, second := p.holder(clients[0], "token-of-the-first-client"), p.holder(clients[len(clients)-1], "token-of-the-second-client")
	take := func(client rig.Contender, want bool) {
		t.Helper()
		if ok, err := client.Take(t.Context()); ok != want || err != nil {
			t.Fatalf("taking it: %v %v, want %v", ok, err, want)
		}
	}
	for range 2 {
		for _, pair := range [][2]rig.Contender{{first, second}, {second, first}} {
			take(pair[0], true)
			p.waitOn(t, c, rig.Quorum, rig.MasterCount)
			take(pair[1], false)
			if err := pair[0].Give(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.waitOn(t, c, 0, 0)
		}
	}
}

// waitOn waits until each key is on at least least and at most most masters. It fails the
// test if a key is on the upstream.
func (p pattern) waitOn(t *testing.T, c *rig.Cluster, least, most int) {
	t.Helper()
	for _, key := range p.keys {
		rig.WaitFor(t, key, func() error {
			count := 0
			for _, master := range c.Masters {
				if present(t.Context(), master, key) {
					count++
				}
			}
			if count < least || count > most {
				return fmt.Errorf("%d masters have it, want %d to %d", count, least, most)
			}
			return nil
		})
		if present(t.Context(), c.Upstream, key) {
			t.Errorf("%s is on the upstream", key)
		}
	}
}

// timestampLock is the lock of the old SETNX page. Its value is the time at which it
// expires, in seconds. A client that finds it expired puts in its own time by GETSET.
type timestampLock struct {
	client *redis.Client
	key    string
	id     int // makes its times different from other clients'
	until  string
}

func (l *timestampLock) take(ctx context.Context) (bool, error) {
	l.until = fmt.Sprintf("%d.%06d", time.Now().Add(time.Minute).Unix(), l.id)
	if ok, err := l.client.Do(ctx, "SETNX", l.key, l.until).Bool(); ok || err != nil {
		return ok, err
	}
	found, err := l.client.Get(ctx, l.key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil // released meanwhile; the caller tries again
	}
	if over, err := isOver(found, err); !over || err != nil {
		return false, err
	}
	old, err := l.client.Do(ctx, "GETSET", l.key, l.until).Text()
	if errors.Is(err, redis.Nil) {
		return true, nil // released meanwhile: the GETSET took it
	}
	return isOver(old, err)
}

func isOver(stamp string, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	until, err := strconv.ParseFloat(stamp, 64)
	return until < float64(time.Now().Unix()), err
}

// give deletes the lock unless it has expired.
func (l *timestampLock) give(ctx context.Context) error {
	if over, err := isOver(l.until, nil); over || err != nil {
		return err
	}
	n, err := l.client.Del(ctx, l.key).Result()
	if err == nil && n == 0 {
		err = errors.New("the lock was no longer its own")
	}
	return err
}

// TestTimestampLockTakenOver: several clients find an expired timestamp lock and put their
// own time into it by GETSET. At most one may believe that it has the lock: a client that
// gets back a time that has not expired has lost.
func TestTimestampLockTakenOver(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	proxies := []*rig.Proxy{c.Proxy, c.AddProxy(t, rig.Options{})}
	for through := 1; through <= len(proxies); through++ {
		t.Run(fmt.Sprint("through ", through), func(t *testing.T) {
			const claimants, rounds = 6, 150
			var clients []*redis.Client
			for _, proxy := range proxies[:through] {
				clients = append(clients, proxy.Client(t))
			}
			taken := 0
			for round := range rounds {
				key := fmt.Sprintf("lock:stamp:%d:%d", through, round)
				if err := clients[0].Set(t.Context(), key, "1000000000.000001", 0).Err(); err != nil {
					t.Fatal(err)
				}
				winners := raceForTimestampLock(t, clients, key, claimants)
				if len(winners) > 1 {
					t.Fatalf("round %d: clients %v all think that they have it", round, winners)
				}
				taken += len(winners)
			}
			t.Logf("%d of %d expired locks were taken over", taken, rounds)
			if taken == 0 {
				t.Error("nobody ever gets an expired lock")
			}
		})
	}
}

// raceForTimestampLock returns the clients that believe they have taken over the expired
// lock.
func raceForTimestampLock(t *testing.T, clients []*redis.Client, key string, claimants int) []int {
	t.Helper()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		winners []int
	)
	start := make(chan struct{})
	for i := range claimants {
		wg.Go(func() {
			<-start
			ok, err := (&timestampLock{client: clients[i%len(clients)], key: key, id: i}).take(t.Context())
			if err != nil && !rig.NoQuorum(err) { // without a quorum the client has not got the lock
				t.Errorf("client %d: %v", i, err)
			}
			if ok {
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, i)
			}
		})
	}
	close(start)
	wg.Wait()
	return winners
}
