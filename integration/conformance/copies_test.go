package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"redlock-proxy/integration/rig"
)

// These are the events of a story that look at the servers.

// onMasters counts, for each key of the lock, the running masters that satisfy the
// condition. It returns the least and the greatest of these numbers.
func (s *run) onMasters(lock string, satisfied func(ctx context.Context, master *rig.Server, key string) bool) (least, most int) {
	ctx, cancel := context.WithTimeout(s.t.Context(), rig.Patience)
	defer cancel()
	least = rig.MasterCount
	for _, key := range s.keys(nil, lock) {
		count := 0
		for _, master := range s.cluster.Masters {
			if master.Proc.Running() && satisfied(ctx, master, key) {
				count++
			}
		}
		least, most = min(least, count), max(most, count)
	}
	return least, most
}

func present(ctx context.Context, master *rig.Server, key string) bool {
	return master.Direct.Exists(ctx, key).Val() == 1
}

// quorumOf requires that a majority satisfies the condition.
func (s *run) quorumOf(lock, what string, satisfied func(ctx context.Context, master *rig.Server, key string) bool) {
	s.patiently(lock+" "+what, func() error {
		if least, _ := s.onMasters(lock, satisfied); least < rig.Quorum {
			return fmt.Errorf("on %d masters", least)
		}
		return nil
	})
}

// onQuorum requires the lock on a majority of all masters. It asks the masters directly.
func (s *run) onQuorum(lock string) { s.quorumOf(lock, "is there", present) }

func (s *run) lasts(lock string, ms int64) {
	s.quorumOf(lock, "is extended", func(ctx context.Context, master *rig.Server, key string) bool {
		return master.Direct.PTTL(ctx, key).Val().Milliseconds() > ms
	})
}

// renewed requires that the time left rises on a majority without an extension by the test.
func (s *run) renewed(lock string) {
	last := make(map[string]time.Duration)
	s.quorumOf(lock, "is prolonged by its holder's library", func(ctx context.Context, master *rig.Server, key string) bool {
		id, left := master.Name+" "+key, master.Direct.PTTL(ctx, key).Val()
		before, seen := last[id]
		last[id] = left
		return seen && left > before
	})
}

// gone requires that the lock is on no master, and not on the upstream.
func (s *run) gone(lock string) {
	s.patiently(lock+" is gone", func() error {
		if _, most := s.onMasters(lock, present); most > 0 {
			return fmt.Errorf("%d masters still have it", most)
		}
		return nil
	})
	for _, key := range s.keys(nil, lock) {
		if s.err == nil && present(s.t.Context(), s.cluster.Upstream, key) {
			s.err = fmt.Errorf("%s is on the upstream", key)
		}
	}
}

// contents returns the state of the lock's keys on each master.
func (s *run) contents(lock string) (all []map[string]rig.KeyState) {
	keys := s.keys(nil, lock)
	for _, master := range s.cluster.Masters {
		if s.err != nil {
			return nil
		}
		states, err := master.States(s.t.Context(), keys)
		all, s.err = append(all, states), err
	}
	return all
}

// settledContents returns the contents once they no longer change. The proxy undoes the
// minority grants of a refused acquire only after its answer.
func (s *run) settledContents(lock string) (all []map[string]rig.KeyState) {
	same := func(a, b map[string]rig.KeyState) bool {
		return maps.EqualFunc(a, b, func(a, b rig.KeyState) bool { return a.Kind == b.Kind && a.Contents == b.Contents })
	}
	s.patiently("the copies of "+lock+" settle", func() error {
		before := s.contents(lock)
		rig.Pause(s.t.Context(), time.Second)
		if all = s.contents(lock); s.err == nil && !slices.EqualFunc(before, all, same) {
			return errors.New("they still change")
		}
		return nil
	})
	return all
}

// holdsStill requires that the lock is as it was on every master that had it.
func (s *run) holdsStill(lock string) {
	for i, after := range s.contents(lock) {
		for key, was := range s.before[i] {
			is := after[key]
			if s.err == nil && was.Kind != "none" && (is.Kind != was.Kind || is.Contents != was.Contents) {
				s.err = fmt.Errorf("%s was %s on %s, and is %s", key, was, s.cluster.Masters[i].Name, is)
			}
		}
	}
}

const waitersRest = 500 * time.Millisecond

// watch returns a function that waits until the first master has seen another command on
// the lock.
func (s *run) watch(lock string) func() {
	if s.cluster.Embedded { // a test cannot look at embedded servers, and need not
		return func() { rig.Pause(s.t.Context(), waitersRest) }
	}
	monitor := rig.Dial(s.t, s.cluster.Masters[0].Addr(), 2)
	if _, err := monitor.Do("MONITOR"); err != nil {
		s.err = err
	}
	return func() {
		defer monitor.Conn.Close()
		for s.err == nil {
			seen, err := monitor.Read()
			if err != nil {
				s.err = fmt.Errorf("nobody tries to get %s: %w", lock, err)
			}
			if strings.Contains(string(seen), lock) {
				return
			}
		}
	}
}

var isVoting = regexp.MustCompile(`(?m)^redlock_master_state\{.*state="voting"\} 1$`)

// vote waits until this number of masters vote.
func (s *run) vote(masters int) {
	s.patiently(fmt.Sprintf("%d masters vote", masters), func() error {
		if n := len(isVoting.FindAllString(s.proxy.Metrics(s.t), -1)); n != masters {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
}

// leavesNothing requires that no server has a key of the library's locks, except for the
// keys that belong there. A key with a short TTL may expire by itself.
func (s *run) leavesNothing(locks string) error {
	s.patiently("nothing is left", func() error {
		for _, server := range s.cluster.Servers() {
			left, err := server.Direct.Keys(s.t.Context(), "*"+locks+"*").Result()
			if err != nil {
				return err
			}
			stays := s.library.masterKeys
			if server == s.cluster.Upstream {
				stays = s.library.upstreamKeys
			}
			left = slices.DeleteFunc(left, func(key string) bool { return matchesAny(stays, key) })
			if len(left) > 0 {
				return fmt.Errorf("%s has %q", server.Name, left)
			}
		}
		return nil
	})
	return s.err
}

func matchesAny(globs []string, key string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { ok, _ := path.Match(glob, key); return ok })
}
