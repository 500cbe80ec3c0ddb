package conformance

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// waitingLibraries take their locks in different ways: by SET NX, and by scripts on a
// string, a hash, a sorted set and several keys. The first ones run in each tier.
var waitingLibraries = []string{
	"phpredis by hand", "Symfony Lock over phpredis",
	"Jedis 8.0.2 by hand", "Redisson 4.7.0 RLock",
	"redis-py 8.1.0",

	"predis by hand", "Laravel cache lock over phpredis", "Spring RedisLockRegistry 7.1.0 spin lock",
	"aioredlock 0.7.3", "node-redlock 5.0.0-beta.2 two resources", "bsm/redislock 0.9.4", "redsync 4.18.1 go-redis 9",
	"commands of redlock (gem) 2.0.6 on redis-rb",
}

const everydayWaitingLibraries = 5

// TestWait: with a wait in the rule, clients that know nothing of it get a lock by a single
// try. They are served in their order, also by a release through another proxy. A client
// that is killed is passed over, and one whose time is over is refused.
func TestWait(t *testing.T) {
	t.Parallel()
	names := waitingLibraries
	if layer.Chosen() < layer.Long {
		t.Run("the others", func(t *testing.T) {
			layer.Only(t, layer.Long, fmt.Sprintf("%d more libraries", len(names)-everydayWaitingLibraries))
		})
		names = names[:everydayWaitingLibraries]
	}
	rules := []string{"*lock:short*", "*lock:*"}
	c := rig.StartCluster(t, rig.Options{Rules: rules, RuleMore: map[string]string{rules[0]: "wait: 50ms", rules[1]: "wait: 1m"}})
	other := c.AddProxy(t, rig.Options{Rules: rules, RuleMore: map[string]string{rules[0]: "wait: 50ms", rules[1]: "wait: 1m"}, NotNew: true})
	for i, name := range names {
		library := libraryNamed(t, name)
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			x := &waitingLine{T: t, library: library, program: library.program(t), lock: fmt.Sprintf("lock:line-%d", i), rule: rules[1]}
			x.live(c.Proxy, other)
		})
	}
}

// A waitingLine is clients of one library that want one lock.
type waitingLine struct {
	*testing.T
	library    conformanceLibrary
	program    clientProgram
	lock, rule string
}

func (x *waitingLine) live(near, far *rig.Proxy) {
	first, second, third := x.client("the first", near), x.client("the second", near), x.client("the third", near)
	distant := x.client("the distant", far)
	for _, client := range []*conformanceClient{first, distant} { // now both proxies know its script, if it has one
		x.takes(client, x.lock)
		x.says(client, "yes", "release", x.lock)
	}

	x.takes(first, x.lock)
	x.waits(second, near, 1)
	x.waits(third, near, 2)
	x.says(first, "yes", "release", x.lock)
	x.granted(second)
	x.wantWaiting(near, 1)
	x.says(second, "yes", "release", x.lock)
	x.granted(third)

	x.waits(distant, far, 1)
	x.says(third, "yes", "release", x.lock)
	x.granted(distant)

	x.waits(first, near, 1)
	x.waits(second, near, 2)
	first.kill()
	x.wantWaiting(near, 1)
	x.says(distant, "yes", "release", x.lock)
	x.granted(second)
	x.says(second, "yes", "release", x.lock)

	short := "lock:short-" + x.lock
	x.takes(second, short)
	x.says(third, "no", "acquire", short, rig.LongTTL.Milliseconds())
	x.says(second, "yes", "release", short)
	x.wantWaiting(near, 0)
	x.wantWaiting(far, 0)
}

// client starts a client of the library that uses this proxy.
func (x *waitingLine) client(name string, proxy *rig.Proxy) *conformanceClient {
	x.Helper()
	client, err := startConformanceClient(x.T, name, x.program, proxy.Port, x.library.selects)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() {
		client.kill()
		if x.Failed() {
			x.Logf("%s:\n%s", name, client.log.Tail(30))
		}
	})
	return client
}

func (x *waitingLine) says(client *conformanceClient, want string, words ...any) {
	x.Helper()
	if answer, err := client.ask(words...); err != nil || answer != want {
		x.Fatalf("%s client answers %q to %q: %v", client.name, answer, words, err)
	}
}

func (x *waitingLine) takes(client *conformanceClient, lock string) {
	x.Helper()
	x.says(client, "yes", "acquire", lock, rig.LongTTL.Milliseconds())
}

// waits has a client try once. It returns when the proxy holds so many back.
func (x *waitingLine) waits(client *conformanceClient, proxy *rig.Proxy, waiting int) {
	x.Helper()
	if err := client.tell("acquire", x.lock, rig.LongTTL.Milliseconds()); err != nil {
		x.Fatal(err)
	}
	x.wantWaiting(proxy, waiting)
}

// granted requires that the client's one try is granted.
func (x *waitingLine) granted(client *conformanceClient) {
	x.Helper()
	if answer, err := client.answer(); err != nil || answer != "yes" {
		x.Fatalf("%s client is answered %q: %v", client.name, answer, err)
	}
}

func (x *waitingLine) wantWaiting(proxy *rig.Proxy, want int) {
	x.Helper()
	rig.WaitFor(x, fmt.Sprint(want, " acquires wait"), func() error {
		if got := proxy.Metric(x, fmt.Sprintf("redlock_waiting_acquires{rule=%q}", x.rule)); got != fmt.Sprint(want) {
			return fmt.Errorf("%s wait", got)
		}
		return nil
	})
}
