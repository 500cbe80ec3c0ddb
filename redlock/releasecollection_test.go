package redlock

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// Each master keeps a collection in an order of its own, and maybe with times of its own. A release
// still deletes it everywhere.
func TestReleaseOfACollectionReachesEveryMaster(t *testing.T) {
	s := startLiveSet(t, 5)
	members := []string{"first", "second", "third", "fourth", "5"}
	for kind, fill := range map[string]func(m *liveMaster, members []string){
		"set":  func(m *liveMaster, members []string) { m.must(append([]string{"SADD", key}, members...)...) },
		"list": func(m *liveMaster, _ []string) { m.must("RPUSH", key, "a", "b", "a") },
		"hash": func(m *liveMaster, members []string) {
			for _, member := range members {
				m.must("HSET", key, member, "1")
			}
		},
		"sorted set": func(m *liveMaster, members []string) {
			for i, member := range members {
				m.must("ZADD", key, fmt.Sprint(1700000000000+i), member)
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for range 10 {
				for i, m := range s.masters {
					fill(m, slices.Concat(members[i:], members[:i]))
				}
				if o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won {
					t.Fatalf("%v", o.Verdict)
				}
				s.eventuallyGone(key)
			}
		})
	}
}

// A collection that differs in any part is another lock.
func TestReleaseOfACollectionSparesAnother(t *testing.T) {
	m := startLiveMaster(t)
	for _, row := range []struct{ fill, other []string }{
		{[]string{"SADD", "k", "a", "b"}, []string{"SADD", "k", "c"}},
		{[]string{"SADD", "k", "a", "b"}, []string{"SREM", "k", "b"}},
		{[]string{"RPUSH", "k", "a", "b"}, []string{"LSET", "k", "0", "b"}},
		{[]string{"RPUSH", "k", "a", "b"}, []string{"RPUSH", "k", "c"}},
		{[]string{"ZADD", "k", "1", "a"}, []string{"ZADD", "k", "1", "b"}},
		{[]string{"HSET", "k", "a", "1", "b", "2"}, []string{"HSET", "k", "b", "3"}},
		{[]string{"HSET", "k", "a", "1", "b", "2"}, []string{"HDEL", "k", "b"}},
		{[]string{"HSET", "k", "a", "1"}, []string{"SET", "k", "v"}},
		{[]string{"XADD", "k", "1-1", "a", "1"}, []string{"XADD", "k", "2-1", "a", "1"}},
	} {
		m.must("DEL", "k")
		m.must(row.fill...)
		release := resp.AppendEval(nil, deleteScript, [][]byte{[]byte("k")}, rdb.Words(m.dump("k"))...)
		m.must(row.other...)
		if got := string(m.conn.ask(release, 1)[0]); got != ":0\r\n" {
			t.Errorf("%q, then %q: %q", row.fill, row.other, got)
		}
		m.must("DEL", "k")
		m.must(row.fill...)
		if got := string(m.conn.ask(release, 1)[0]); got != ":1\r\n" {
			t.Errorf("%q: %q", row.fill, got)
		}
	}
}

// GETDEL has no value to give of a collection, and leaves it.
func TestGETDELOfACollectionIsAnError(t *testing.T) {
	s := startLiveSet(t, 3)
	for _, m := range s.masters {
		m.must("RPUSH", key, "a")
	}
	o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key), Get: true})
	if o.Verdict != Won || !strings.HasPrefix(o.Err, "WRONGTYPE") {
		t.Errorf("%+v", o)
	}
	for _, m := range s.masters {
		if n := string(m.must("LLEN", key)); n != ":1\r\n" {
			t.Errorf("it has %q elements", n)
		}
	}
}

// A key that other clients of this proxy make grow all the time is there, and a DEL deletes it.
func TestReleaseOfWhatGrows(t *testing.T) {
	s := startLiveSet(t, 5)
	for _, grow := range [][]string{{"RPUSH", "k", "x"}, {"APPEND", "k", "x"}, {"HINCRBY", "k", "f", "1"}, {"SADD", "k", ""}} {
		t.Run(grow[0], func(t *testing.T) {
			for round := range 10 {
				key := fmt.Sprint(grow[0], round)
				var grown atomic.Int64
				ctx, stop := context.WithCancel(t.Context())
				var clients sync.WaitGroup
				for range 4 {
					clients.Go(func() {
						for ctx.Err() == nil {
							command := slices.Clone(grow)
							command[1] = key
							if n := grown.Add(1); command[2] == "" {
								command[2] = fmt.Sprint(n)
							}
							s.run([]string{key}, command...)
						}
					})
				}
				for grown.Load() < 10 {
					runtime.Gosched()
				}
				if o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won {
					t.Errorf("%v", o.Verdict)
				}
				stop()
				clients.Wait()
			}
		})
	}
}
