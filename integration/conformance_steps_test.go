package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// The steps of a conformanceRun. None is taken after one that failed.

// says wants exactly this answer.
func (s *conformanceRun) says(client *conformanceClient, want string, words ...any) {
	s.t.Helper()
	answer := s.asks(client, words...)
	switch {
	case s.err != nil || answer == want:
	case answer == "unsupported":
		s.err = errUnsupported
	default:
		s.err = fmt.Errorf("%s answers %q to %q, want %q", client.name, answer, words, want)
	}
}

// sees wants this answer if the library has the means, and tells whether it has.
func (s *conformanceRun) sees(client *conformanceClient, want string, words ...any) bool {
	answer := s.asks(client, words...)
	if s.err != nil || answer == "unsupported" {
		return false
	}
	if answer != want {
		s.err = fmt.Errorf("%s answers %q to %q, want %q", client.name, answer, words, want)
	}
	return true
}

// cannotTell wants an error that tells of the lost quorum, in the proxy's words or
// in the library's own, or "no" of a library that takes every error for that.
func (s *conformanceRun) cannotTell(client *conformanceClient, words ...any) {
	s.tells(client, words...)
	if s.err != nil {
		return
	}
	want := cmp.Or(s.library.failedNode, "QUORUMLOST")
	answer, err := client.answer()
	var said saidError
	switch {
	case s.library.swallowsErrors && err == nil && answer == "no":
	case s.library.swallowsErrors:
		s.err = fmt.Errorf("%s answers %q (%v) to %q without a quorum, and the list says that it takes every error for \"no\"", client.name, answer, err, words)
	case !errors.As(err, &said) || !strings.Contains(string(said), want):
		s.err = fmt.Errorf("%s answers %q (%v) to %q without a quorum, want an error with %q", client.name, answer, err, words, want)
	}
}

func (s *conformanceRun) asks(client *conformanceClient, words ...any) string {
	s.tells(client, words...)
	return s.hears(client)
}

func (s *conformanceRun) tells(client *conformanceClient, words ...any) {
	if s.err == nil {
		s.err = client.tell(words...)
	}
}

func (s *conformanceRun) hears(client *conformanceClient) (answer string) {
	if s.err == nil {
		answer, s.err = client.answer()
	}
	return answer
}

// answers wants this answer to what was told before.
func (s *conformanceRun) answers(client *conformanceClient, want string) {
	if answer := s.hears(client); s.err == nil && answer != want {
		s.err = fmt.Errorf("%s answers %q, want %q", client.name, answer, want)
	}
}

func (s *conformanceRun) shortest() int64 {
	if s.library.shortest > 0 {
		return s.library.shortest.Milliseconds()
	}
	return 2000
}

// keys are where the library keeps that lock. The first client is asked once,
// and must not be waiting for something then.
func (s *conformanceRun) keys(lock string) []string {
	if s.where[lock] == nil {
		keys := strings.Fields(s.asks(s.first, "key", lock))
		if s.err == nil && len(keys) == 0 {
			s.err = errors.New("the library says of no key that it is " + lock)
		}
		s.where[lock] = keys
	}
	return s.where[lock]
}

// patiently takes check's last error for its own when patience is over.
func (s *conformanceRun) patiently(what string, check func() error) {
	for deadline := time.Now().Add(patience); s.err == nil; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.err = fmt.Errorf("%s: %w", what, err)
		}
	}
}

// onMasters asks every master that runs how many of them satisfy each key.
func (s *conformanceRun) onMasters(lock string, satisfied func(ctx context.Context, master *redisServer, key string) bool) (least, most int) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	least = masterCount
	for _, key := range s.keys(lock) {
		count := 0
		for _, master := range s.cluster.masters {
			if master.proc.Running() && satisfied(ctx, master, key) {
				count++
			}
		}
		least, most = min(least, count), max(most, count)
	}
	return least, most
}

func present(ctx context.Context, master *redisServer, key string) bool {
	return master.direct.Exists(ctx, key).Val() == 1
}

// onQuorum wants the lock on a majority of all masters, looking at them directly.
func (s *conformanceRun) onQuorum(lock string) {
	s.patiently(lock+" is on a quorum", func() error {
		if least, _ := s.onMasters(lock, present); least < quorum {
			return fmt.Errorf("%d masters have it", least)
		}
		return nil
	})
}

// lasts wants more than so much time left on a majority.
func (s *conformanceRun) lasts(lock string, ttl time.Duration) {
	s.patiently(lock+" is extended", func() error {
		least, _ := s.onMasters(lock, func(ctx context.Context, master *redisServer, key string) bool {
			return master.direct.PTTL(ctx, key).Val() > ttl
		})
		if least < quorum {
			return fmt.Errorf("on %d masters", least)
		}
		return nil
	})
}

// renewed wants the time left to rise on a majority without a word from here.
func (s *conformanceRun) renewed(lock string) {
	last := make(map[string]time.Duration)
	s.patiently(lock+" is prolonged by its holder's library", func() error {
		least, _ := s.onMasters(lock, func(ctx context.Context, master *redisServer, key string) bool {
			id, left := master.name+" "+key, master.direct.PTTL(ctx, key).Val()
			before, seen := last[id]
			last[id] = left
			return seen && left > before
		})
		if least < quorum {
			return fmt.Errorf("on %d masters at once", least)
		}
		return nil
	})
}

// gone wants the lock on no master, and never on the upstream.
func (s *conformanceRun) gone(lock string) {
	s.patiently(lock+" is gone", func() error {
		if _, most := s.onMasters(lock, present); most > 0 {
			return fmt.Errorf("%d masters still have it", most)
		}
		return nil
	})
	for _, key := range s.keys(lock) {
		if s.err == nil && present(s.t.Context(), s.cluster.upstream, key) {
			s.err = fmt.Errorf("%s is on the upstream", key)
		}
	}
}

// contents is what each master holds of the lock.
func (s *conformanceRun) contents(lock string) []map[string]keyState {
	var all []map[string]keyState
	keys := s.keys(lock)
	for _, master := range s.cluster.masters {
		if s.err != nil {
			return nil
		}
		states, err := master.states(s.t.Context(), keys)
		all, s.err = append(all, states), err
	}
	return all
}

// holdsStill wants every master that held the lock to hold it as it was.
func (s *conformanceRun) holdsStill(lock string, before []map[string]keyState) {
	for i, after := range s.contents(lock) {
		for key, was := range before[i] {
			is := after[key]
			if s.err == nil && was.kind != "none" && (is.kind != was.kind || is.contents != was.contents) {
				s.err = fmt.Errorf("%s is no longer what it was on %s", key, s.cluster.masters[i].name)
			}
		}
	}
}

// watch returns a function that waits until a master has seen another command
// on the lock.
func (s *conformanceRun) watch(lock string) func() {
	if s.cluster.toys { // nobody can look, and it need not be seen
		return func() { pause(s.t.Context(), waitersRest) }
	}
	monitor := dialWire(s.t, s.cluster.masters[0].addr(), 2)
	if _, err := monitor.do("MONITOR"); err != nil {
		s.err = err
	}
	return func() {
		defer monitor.conn.Close()
		for s.err == nil {
			seen, err := monitor.read()
			if err != nil {
				s.err = fmt.Errorf("nobody tries to get %s: %w", lock, err)
			}
			if strings.Contains(string(seen), lock) {
				return
			}
		}
	}
}

// allVote waits until no master is in quarantine any more.
func (s *conformanceRun) allVote() { s.vote(masterCount) }

// vote waits until so many masters vote.
func (s *conformanceRun) vote(masters int) {
	client := s.proxy.client(s.t)
	s.patiently(fmt.Sprintf("%d masters vote", masters), func() error {
		info, err := client.Info(s.t.Context(), "redlock").Result()
		if want := fmt.Sprintf("redlock_masters_voting:%d\r\n", masters); err == nil && !strings.Contains(info, want) {
			err = errors.New(info)
		}
		return err
	})
}

// leavesNothing wants no key of the library's locks on any server, but for
// what belongs there. What has a short TTL of its own may be left to it.
func (s *conformanceRun) leavesNothing(locks string) {
	s.patiently("nothing is left", func() error {
		for _, server := range s.cluster.servers() {
			left, err := server.direct.Keys(s.t.Context(), "*"+locks+"*").Result()
			if err != nil {
				return err
			}
			stays := s.library.masterKeys
			if server == s.cluster.upstream {
				stays = s.library.upstreamKeys
			}
			left = slices.DeleteFunc(left, func(key string) bool {
				return slices.ContainsFunc(stays, func(glob string) bool {
					belongs, _ := path.Match(glob, key)
					return belongs
				})
			})
			if len(left) > 0 {
				return fmt.Errorf("%s has %q", server.name, left)
			}
		}
		return nil
	})
}
