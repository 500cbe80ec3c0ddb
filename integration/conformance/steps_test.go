package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"redlock-proxy/integration/rig"
)

// These are the steps of a conformanceRun. After a failed step no other runs.

// says requires exactly this answer.
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

// sees requires this answer if the library has the means, and tells whether it has.
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

// cannotTell requires an error about the lost quorum, in the proxy's words or in the
// library's own. A library that takes every error for "no" must answer "no".
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

// answers requires this answer to an earlier line of tells.
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

// keys returns the keys of a lock. It asks the first client once for each lock. That client
// must not be waiting for something at that time.
func (s *conformanceRun) keys(lock string) []string {
	if s.where[lock] == nil {
		keys := strings.Fields(s.asks(s.first, "key", lock))
		if s.err == nil && len(keys) == 0 {
			s.err = errors.New("the library names no key of " + lock)
		}
		s.where[lock] = keys
	}
	return s.where[lock]
}

// patiently polls check. If check still fails after Patience, its last error ends the run.
func (s *conformanceRun) patiently(what string, check func() error) {
	for deadline := time.Now().Add(rig.Patience); s.err == nil; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.err = fmt.Errorf("%s: %w", what, err)
		}
	}
}

// onMasters counts, for each key of the lock, the running masters that satisfy the
// condition. It returns the least and the greatest of these numbers.
func (s *conformanceRun) onMasters(lock string, satisfied func(ctx context.Context, master *rig.Server, key string) bool) (least, most int) {
	ctx, cancel := context.WithTimeout(s.t.Context(), rig.Patience)
	defer cancel()
	least = rig.MasterCount
	for _, key := range s.keys(lock) {
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

// onQuorum requires the lock on a majority of all masters. It asks the masters directly.
func (s *conformanceRun) onQuorum(lock string) {
	s.patiently(lock+" is on a quorum", func() error {
		if least, _ := s.onMasters(lock, present); least < rig.Quorum {
			return fmt.Errorf("%d masters have it", least)
		}
		return nil
	})
}

// lasts requires that more than this time is left on a majority.
func (s *conformanceRun) lasts(lock string, ttl time.Duration) {
	s.patiently(lock+" is extended", func() error {
		least, _ := s.onMasters(lock, func(ctx context.Context, master *rig.Server, key string) bool {
			return master.Direct.PTTL(ctx, key).Val() > ttl
		})
		if least < rig.Quorum {
			return fmt.Errorf("on %d masters", least)
		}
		return nil
	})
}

// renewed requires that the time left rises on a majority without an extension by the test.
func (s *conformanceRun) renewed(lock string) {
	last := make(map[string]time.Duration)
	s.patiently(lock+" is prolonged by its holder's library", func() error {
		least, _ := s.onMasters(lock, func(ctx context.Context, master *rig.Server, key string) bool {
			id, left := master.Name+" "+key, master.Direct.PTTL(ctx, key).Val()
			before, seen := last[id]
			last[id] = left
			return seen && left > before
		})
		if least < rig.Quorum {
			return fmt.Errorf("on %d masters at once", least)
		}
		return nil
	})
}

// gone requires that the lock is on no master, and not on the upstream.
func (s *conformanceRun) gone(lock string) {
	s.patiently(lock+" is gone", func() error {
		if _, most := s.onMasters(lock, present); most > 0 {
			return fmt.Errorf("%d masters still have it", most)
		}
		return nil
	})
	for _, key := range s.keys(lock) {
		if s.err == nil && present(s.t.Context(), s.cluster.Upstream, key) {
			s.err = fmt.Errorf("%s is on the upstream", key)
		}
	}
}

// contents returns the state of the lock's keys on each master.
func (s *conformanceRun) contents(lock string) []map[string]rig.KeyState {
	var all []map[string]rig.KeyState
	keys := s.keys(lock)
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
func (s *conformanceRun) settledContents(lock string) (all []map[string]rig.KeyState) {
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

// holdsStill requires that the lock is unchanged on every master that had it.
func (s *conformanceRun) holdsStill(lock string, before []map[string]rig.KeyState) {
	for i, after := range s.contents(lock) {
		for key, was := range before[i] {
			is := after[key]
			if s.err == nil && was.Kind != "none" && (is.Kind != was.Kind || is.Contents != was.Contents) {
				s.err = fmt.Errorf("%s was %s on %s, and is %s", key, was, s.cluster.Masters[i].Name, is)
			}
		}
	}
}

// watch returns a function that waits until the first master has seen another command on
// the lock.
func (s *conformanceRun) watch(lock string) func() {
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

// allVote waits until no master is in quarantine.
func (s *conformanceRun) allVote() { s.vote(rig.MasterCount) }

// vote waits until this number of masters vote.
func (s *conformanceRun) vote(masters int) {
	client := s.proxy.Client(s.t)
	s.patiently(fmt.Sprintf("%d masters vote", masters), func() error {
		info, err := client.Info(s.t.Context(), "redlock").Result()
		if want := fmt.Sprintf("redlock_masters_voting:%d\r\n", masters); err == nil && !strings.Contains(info, want) {
			err = errors.New(info)
		}
		return err
	})
}

// leavesNothing requires that no server has a key of the library's locks, except for the
// keys that belong there. A key with a short TTL may expire by itself.
func (s *conformanceRun) leavesNothing(locks string) {
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
			left = slices.DeleteFunc(left, func(key string) bool {
				return slices.ContainsFunc(stays, func(glob string) bool {
					belongs, _ := path.Match(glob, key)
					return belongs
				})
			})
			if len(left) > 0 {
				return fmt.Errorf("%s has %q", server.Name, left)
			}
		}
		return nil
	})
}
