package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestNothingToLearn: a proxy that learns takes none of the things for a lock for which applications use Redis
// otherwise, and then finds the first lock.
//
//	REDLOCK_TEST=long UNLOCKED_TIME=1h go test ./integration/conformance -run '^TestNothingToLearn$' -timeout 2h -v
//
// UNLOCKED_TIME is its length, 5s if not given, and longer until each habit had a turn. The seed (layer.Seed) chooses
// what the clients do.
func TestNothingToLearn(t *testing.T) {
	t.Parallel()
	length, err := time.ParseDuration(cmp.Or(os.Getenv("UNLOCKED_TIME"), "5s"))
	if err != nil {
		t.Fatalf("UNLOCKED_TIME: %v", err)
	}
	seed := layer.Seed(t, "UNLOCKED_TIME")
	proxy := rig.StartProxy(t, rig.Options{Upstream: rig.StartServer(t, "upstream").URL(), Learn: true, LogLevel: "info"})
	services := []*redis.Client{proxy.Client(t), proxy.Client(t)}
	var sent atomic.Int64
	var working sync.WaitGroup
	habits := corpus.Read(rig.ReadFile(t, "conformance/stories/unlocked.txt"))
	for over, worker := time.Now().Add(length), 0; worker < 4; worker++ {
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		working.Go(func() {
			for round := 0; round == 0 || time.Now().Before(over) && !t.Failed(); round++ {
				for _, i := range random.Perm(len(habits.Stories)) {
					n, err := turn(t, services, habits, habits.Stories[i].Lines, random)
					if err != nil {
						t.Errorf("%s: %v", habits.Stories[i].Title, err)
					}
					sent.Add(int64(n))
					rig.Pause(t.Context(), rig.Between(random, 0, 20*time.Millisecond))
				}
			}
		})
	}
	working.Wait()
	found := proxy.Unruled(t)
	t.Logf("%d habits, %d commands: %d patterns", len(habits.Stories), sent.Load(), len(found))
	if len(found) > 0 {
		t.Errorf("%q look like locks", found)
	}
	if _, err := turn(t, services, habits, []string{"SET first:lock me NX EX 60", "DEL first:lock"}, nil); err != nil {
		t.Error(err)
	}
	if found := proxy.Unruled(t); !slices.Contains(found, "first:lock") {
		t.Errorf("a lock is not found: %q", found)
	}
}

// turn sends the commands of a habit, those of a service over one connection. It leaves out some that are in no
// transaction. It returns how many it sent.
func turn(t *testing.T, services []*redis.Client, habits corpus.Theme, lines []string, random *rand.Rand) (sent int, err error) {
	number, whole := "", random == nil || slices.Contains(lines, "MULTI")
	if random != nil {
		number = fmt.Sprint(random.IntN(500))
	}
	conns := make([]*redis.Conn, len(services))
	for i, service := range services {
		conns[i] = service.Conn()
		defer conns[i].Close()
	}
	for _, line := range lines {
		if !whole && random.IntN(5) == 0 {
			continue
		}
		line, second := strings.CutPrefix(line, "2:")
		conn := conns[0]
		if second {
			conn = conns[1]
		}
		if _, err := send(t.Context(), conn, habits.Words(strings.ReplaceAll(line, "#", number))); err != nil {
			return sent, fmt.Errorf("%s: %w", line, err)
		}
		sent++
	}
	return sent, nil
}

// send sends one command, and returns nil for a null. EVAL is tried as EVALSHA before, as libraries do.
func send(ctx context.Context, client redis.Cmdable, words []string) (reply any, err error) {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	if words[0] == "EVAL" {
		keys, _ := strconv.Atoi(words[2])
		reply, err = redis.NewScript(words[1]).Run(ctx, client.(redis.Scripter), words[3:3+keys], args[3+keys:]...).Result()
	} else {
		reply, err = client.(interface {
			Do(ctx context.Context, args ...any) *redis.Cmd
		}).Do(ctx, args...).Result()
	}
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}
