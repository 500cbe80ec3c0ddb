package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/redlock/loop"
)

const releaseByValue = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// liveSet is a Locker over real servers.
type liveSet struct {
	*Locker
	t        testing.TB
	masters  []*liveMaster
	loop     *loop.Loop
	examined examined
	log      lockedText
}

// examined tells whether a run was examined since the last call.
type examined struct {
	nobody
	one  atomic.Bool
	look atomic.Pointer[func(v Verdict)] // called once after the next look; may be nil
}

func (e *examined) Decided(kind Kind, v Verdict, _ time.Duration) {
	if kind == KindRun {
		e.one.Store(true)
	}
	if kind == KindRead {
		if f := e.look.Swap(nil); f != nil {
			(*f)(v)
		}
	}
}

// afterLook calls f after the next look and before anything that follows from it.
func (e *examined) afterLook(f func(v Verdict)) { e.look.Store(&f) }

// startLiveSet starts servers and a Locker whose connections an event loop reads. All masters vote.
func startLiveSet(t testing.TB, n int) *liveSet {
	t.Helper()
	var masters []*liveMaster
	for range n {
		masters = append(masters, startLiveMaster(t))
	}
	set := newLiveSet(t, masters, startLoop(t), func(*Config) {})
	set.awaitVotes()
	return set
}

// newLiveSet makes a Locker over servers, with a changed configuration.
func newLiveSet(t testing.TB, masters []*liveMaster, l *loop.Loop, change func(*Config)) *liveSet {
	t.Helper()
	set := &liveSet{t: t, masters: masters, loop: l}
	cfg := Config{Loop: l, MasterTimeout: livePatience, ClockDrift: 0.01, New: true, Observer: &set.examined, Log: slog.New(slog.NewTextHandler(&set.log, nil))}
	for i, m := range masters {
		cfg.Masters = append(cfg.Masters, Master{Name: fmt.Sprint("m", i+1), Dial: m.dialContext})
	}
	change(&cfg)
	locker, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set.Locker = locker
	t.Cleanup(set.close)
	return set
}

func (s *liveSet) close() {
	ctx, cancel := context.WithTimeout(context.Background(), second)
	defer cancel()
	s.Close(ctx)
}

func (m *liveMaster) dialContext(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", m.socket)
}

// quickly gives the Locker a short timeout, so that copies are quiet soon.
func (s *liveSet) quickly() {
	cfg := *s.settings()
	cfg.MasterTimeout = second
	l, err := New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.close()
	s.Locker = l
	s.awaitVotes()
}

// run runs one command of a client on the lock's keys.
func (s *liveSet) run(keys []string, args ...string) Outcome {
	return s.Run(s.t.Context(), RunRequest{Keys: bytesOf(keys), Args: bytesOf(args)})
}

func bytesOf(texts []string) [][]byte {
	var list [][]byte
	for _, text := range texts {
		list = append(list, []byte(text))
	}
	return list
}

func wantReply(t *testing.T, o Outcome, reply string) {
	t.Helper()
	if o.Verdict != Won || string(o.Reply) != reply {
		t.Errorf("%v %q, want won %q", o.Verdict, o.Reply, reply)
	}
}

// eventually waits for an effect of what a master gets after the verdict.
func (s *liveSet) eventually(what string, holds func(m *liveMaster) bool) {
	s.t.Helper()
	for i, m := range s.masters {
		for end := time.Now().Add(livePatience); !holds(m); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatalf("master %d: not %s", i+1, what)
			}
		}
	}
}

// awaitVotes returns when all masters vote. A ballot would wait only for a quorum.
func (s *liveSet) awaitVotes() {
	s.t.Helper()
	s.Locker.masters.Prepare(0, nil)
	s.eventually("voting", func(*liveMaster) bool {
		votes, _ := s.Prospects(0, time.Now())
		return votes == len(s.masters)
	})
}

// awaitIdle returns when the masters have answered everything.
func (s *liveSet) awaitIdle() {
	s.t.Helper()
	s.eventually("idle", func(*liveMaster) bool { return s.Locker.masters.Idle() })
}

func (s *liveSet) eventuallyGone(key string) {
	s.t.Helper()
	s.eventually(key+" gone", func(m *liveMaster) bool { return m.dump(key) == nil })
}

func (s *liveSet) transaction(r RunRequest, commands ...[]string) Outcome {
	for _, command := range commands {
		r.Transaction = append(r.Transaction, bytesOf(command))
	}
	return s.Run(s.t.Context(), r)
}

func (s *liveSet) all(command []string) {
	s.t.Helper()
	for _, m := range s.masters {
		m.must(command...)
	}
}
