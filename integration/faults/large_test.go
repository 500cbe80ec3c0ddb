package faults

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/work"
)

const mega = 1 << 20

// returns is a script that writes a lock and returns 1 KB, doubled so many times.
func returns(doublings int) string {
	return fmt.Sprintf(`redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000) local s = string.rep('z', 1024) for i = 1, %d do s = s .. s end return s`, doublings)
}

// TestLargeLockCommands: large lock commands of one client neither refuse others their locks nor
// end leases. All lock commands share one ordered connection to each master, so what is too large
// never gets there, and of what is large only one question at a time.
func TestLargeLockCommands(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{
		MasterTimeout: 4 * time.Second, LogLevel: "info",
		Rules: []string{"lock:leased:*", "lock:*"}, RuleMore: map[string]string{"lock:leased:*": "renew: 10m"},
	})
	leased := rig.Dial(t, c.Proxy.Addr(), 2)
	const holders, ttl = 4, 25 * time.Second // six master timeouts, and more
	began := time.Now()
	for i := range holders {
		leased.ExpectReply(t, "+OK\r\n", "SET", fmt.Sprintf("lock:leased:%d", i), "token-of-the-leaseholder", "NX", "PX", strconv.Itoa(int(ttl.Milliseconds())))
	}
	attacker := rig.Dial(t, c.Proxy.Addr(), 2)
	refused := func(setting string, reply []byte, err error) {
		t.Helper()
		if err != nil || reply[0] != '-' || !strings.Contains(string(reply), "limits."+setting) {
			t.Errorf("the answer is %.200q (%v), want an error that names limits.%s", reply, err, setting)
		}
	}
	others := work.Start(t, work.Options{At: work.Through(c.Proxy)})

	reply, err := attacker.Do("SET", "lock:large", strings.Repeat("x", 100*mega), "NX", "PX", "60000")
	refused("lock_command", reply, err)
	for _, commands := range []int{20_000, 50_000} {
		pipeline := rig.Encode("MULTI")
		for i := range commands {
			pipeline = append(pipeline, rig.Encode("SET", fmt.Sprintf("lock:many:%d", i), "token-of-the-attacker", "NX", "PX", "60000")...)
		}
		sent := make(chan error, 1)
		go func() { sent <- attacker.Send(append(pipeline, rig.Encode("EXEC")...)) }()
		for i := range commands + 2 {
			reply, err := attacker.Read()
			switch {
			case i == 1001:
				refused("lock_keys", reply, err)
			case i == commands+1 && !strings.HasPrefix(string(reply), "-EXECABORT "), err != nil:
				t.Fatalf("reply %d to the transaction is %.200q (%v)", i, reply, err)
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	keys := strings.Fields("DEL" + strings.Repeat(" lock:many", 1001))
	reply, err = attacker.Do(keys...)
	refused("lock_keys", reply, err)

	attacker.ExpectReply(t, "+OK\r\n", "SET", "lock:mega", strings.Repeat("y", 1_000_000), "PX", "600000")
	pipelineOfGets(t, c, 20, 5)

	// What is larger than an answer of a master may be neither is read nor grows, and can be deleted.
	attacker.ExpectReply(t, ":5000001\r\n", "SETRANGE", "lock:huge", "5000000", "x")
	for _, command := range []string{"GET lock:huge", "APPEND lock:huge x", "SETRANGE lock:huge 6000000 x", "WATCH lock:huge"} {
		reply, err = attacker.Do(strings.Fields(command)...)
		refused("lock_reply", reply, err)
	}
	attacker.ExpectReply(t, ":1\r\n", "DEL", "lock:huge")
	attacker.ExpectReply(t, ":0\r\n", "EXISTS", "lock:huge")

	// What a script wrote stays, although nobody can read its answer of 8 MB.
	reply, err = attacker.Do("EVAL", returns(13), "1", "lock:script", "written")
	refused("lock_reply", reply, err)
	attacker.ExpectReply(t, "$7\r\nwritten\r\n", "GET", "lock:script")

	others.Check(t)

	// A master works on 64 MB for as long as its machine takes, and nobody can be served meanwhile. The
	// connections stay, and so do leases.
	if reply, err = attacker.Do("EVAL", returns(16), "1", "lock:script", "again"); err != nil || !strings.HasPrefix(string(reply), "-QUORUMLOST ") {
		t.Errorf("a script that returns 64 MB hears %.200q (%v)", reply, err)
	}
	rig.WaitFor(t, "the lock that the script wrote", func() error {
		reply, err := attacker.Do("GET", "lock:script")
		if err == nil && string(reply) != "$5\r\nagain\r\n" {
			err = fmt.Errorf("it is %.200q", reply)
		}
		return err
	})

	rig.Pause(t.Context(), time.Until(began.Add(ttl))) // what was not renewed has ended
	for i := range holders {
		leased.ExpectReply(t, "$24\r\ntoken-of-the-leaseholder\r\n", "GET", fmt.Sprintf("lock:leased:%d", i))
	}
}

// pipelineOfGets reads a lock of 1 MB, through several clients at once.
func pipelineOfGets(t *testing.T, c *rig.Cluster, clients, times int) {
	t.Helper()
	var all sync.WaitGroup
	for range clients {
		w := rig.Dial(t, c.Proxy.Addr(), 2)
		all.Go(func() {
			if err := w.Send([]byte(strings.Repeat(string(rig.Encode("GET", "lock:mega")), times))); err != nil {
				t.Error(err)
				return
			}
			for range times {
				if reply, err := w.Read(); err != nil || len(reply) != len("$1000000\r\n")+1_000_000+2 {
					t.Errorf("the value is %.100q (%v)", reply, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestScansOfALargeLockKey: the masters keep a collection in different orders, so a cursor of one
// of them would lead others past elements.
func TestScansOfALargeLockKey(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	const elements = 1000
	hash, set, sorted := []string{"HSET", "lock:hash"}, []string{"SADD", "lock:set"}, []string{"ZADD", "lock:sorted"}
	for i := range elements {
		name := fmt.Sprintf("element:%d", i)
		hash, set, sorted = append(hash, name, "value"), append(set, name), append(sorted, strconv.Itoa(i), name)
	}
	w := rig.Dial(t, c.Proxy.Addr(), 2)
	for _, fill := range [][]string{hash, set, sorted} {
		w.ExpectReply(t, fmt.Sprintf(":%d\r\n", elements), fill...)
	}
	for what, scan := range map[string]func(cursor uint64) ([]string, uint64, error){
		"HSCAN": func(cursor uint64) ([]string, uint64, error) {
			return client.HScan(t.Context(), "lock:hash", cursor, "element:*", 10).Result()
		},
		"SSCAN": func(cursor uint64) ([]string, uint64, error) {
			return client.SScan(t.Context(), "lock:set", cursor, "element:*", 10).Result()
		},
		"ZSCAN": func(cursor uint64) ([]string, uint64, error) {
			return client.ZScan(t.Context(), "lock:sorted", cursor, "element:*", 10).Result()
		},
	} {
		found := map[string]bool{}
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			page, next, err := scan(cursor)
			if err != nil {
				t.Fatalf("%s from %d: %v", what, cursor, err)
			}
			for _, text := range page {
				if strings.HasPrefix(text, "element:") {
					found[text] = true
				}
			}
			cursor = next
		}
		if len(found) != elements {
			t.Errorf("%s finds %d of %d elements", what, len(found), elements)
		}
	}
}
