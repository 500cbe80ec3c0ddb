package integration

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// The TTLs of locks, in milliseconds: one that no run outlives, and one before
// a lock is extended.
const (
	conformanceTTL = 120_000
	unextendedTTL  = 20_000
	extendedTTL    = 60_000
)

// errUnsupported says that the library has no means for what it was asked.
var errUnsupported = errors.New("unsupported")

// conformanceScenarios are what every library goes through, in this order. The
// last one breaks masters.
var conformanceScenarios = []struct {
	name string
	run  func(s *conformanceRun)
}{
	{"acquire", (*conformanceRun).acquires},
	{"contention", (*conformanceRun).contends},
	{"extend", (*conformanceRun).extends},
	{"release", (*conformanceRun).releases},
	{"foreign release", (*conformanceRun).refusesForeignRelease},
	{"inspection", (*conformanceRun).inspects},
	{"waiting", (*conformanceRun).waits},
	{"expiry", (*conformanceRun).expires},
	{"two masters killed", (*conformanceRun).survivesTwoMasters},
}

// A conformanceRun is one scenario of one library. After the first step that
// did not go as it must, err says what happened and no further step is taken.
type conformanceRun struct {
	t             *testing.T
	cluster       *cluster
	library       conformanceLibrary
	first, second *conformanceClient
	start         func(name string) (*conformanceClient, error) // one more client
	lock          string
	where         map[string][]string // keys, by lock
	err           error
}

func (s *conformanceRun) acquires() {
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
}

func (s *conformanceRun) contends() {
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	for range 3 {
		s.says(s.second, "no", "acquire", s.lock, conformanceTTL)
	}
	s.onQuorum(s.lock)
	s.says(s.first, "yes", "release", s.lock)
	s.says(s.second, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	s.says(s.first, "no", "acquire", s.lock, conformanceTTL)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
}

func (s *conformanceRun) extends() {
	s.says(s.first, "yes", "acquire", s.lock, unextendedTTL)
	s.says(s.first, "yes", "extend", s.lock, extendedTTL)
	s.lasts(s.lock, (unextendedTTL+extendedTTL)/2*time.Millisecond)
	s.says(s.second, "no", "acquire", s.lock, unextendedTTL)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
}

// releases: a released lock is free for everybody, its last holder included.
func (s *conformanceRun) releases() {
	for _, client := range []*conformanceClient{s.first, s.second, s.second, s.first} {
		s.says(client, "yes", "acquire", s.lock, conformanceTTL)
		s.onQuorum(s.lock)
		s.says(client, "yes", "release", s.lock)
		s.gone(s.lock)
	}
}

func (s *conformanceRun) refusesForeignRelease() {
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	before := s.contents(s.lock)
	s.says(s.second, "no", "steal", s.lock)
	s.holdsStill(s.lock, before)
	s.says(s.second, "no", "acquire", s.lock, conformanceTTL)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
}

// inspects asks what the library can tell; it is enough that it has one of the
// two views.
func (s *conformanceRun) inspects() {
	views := 0
	for _, verb := range []string{"held", "mine"} {
		if s.sees(s.first, "no", verb, s.lock) {
			views++
		}
	}
	if views == 0 && s.err == nil {
		s.err = errUnsupported
	}
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.sees(s.first, "yes", "held", s.lock)
	s.sees(s.first, "yes", "mine", s.lock)
	s.sees(s.second, "yes", "held", s.lock)
	s.sees(s.second, "no", "mine", s.lock)
	s.says(s.first, "yes", "release", s.lock)
	s.sees(s.first, "no", "mine", s.lock)
	s.sees(s.second, "no", "held", s.lock)
	s.gone(s.lock)
}

// waits: the waiter is there before the holder releases, and gets the lock.
func (s *conformanceRun) waits() {
	s.says(s.second, "yes", "wait", s.lock, conformanceTTL, patience.Milliseconds())
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.says(s.second, "no", "wait", s.lock, conformanceTTL, 500)
	tried := s.watch(s.lock)
	s.tells(s.second, "wait", s.lock, conformanceTTL, patience.Milliseconds())
	tried()
	s.says(s.first, "yes", "release", s.lock)
	s.answers(s.second, "yes")
	s.onQuorum(s.lock)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
}

// expires: what a dead client held comes free by itself, for those who try and
// for those who wait. What a living one holds does not, where the library sees
// to it.
func (s *conformanceRun) expires() {
	victim, err := s.start("the victim")
	if err != nil {
		s.err = err
		return
	}
	defer victim.kill()
	ttl, awaited := s.shortest(), s.lock+"-awaited"
	s.keys(s.lock)
	s.keys(awaited)
	waits := s.asks(s.first, "wait", awaited, conformanceTTL, patience.Milliseconds()) != "unsupported"
	if waits {
		s.says(s.first, "yes", "release", awaited)
		s.gone(awaited)
		s.says(victim, "yes", "acquire", awaited, ttl)
	}
	s.says(victim, "yes", "acquire", s.lock, ttl)
	if s.library.renews {
		s.renewed(s.lock)
		s.renewed(s.lock)
	}
	victim.kill()
	if waits {
		s.tells(s.first, "wait", awaited, conformanceTTL, patience.Milliseconds())
	}
	s.patiently("the lock of a dead client is free", func() error {
		if answer := s.asks(s.second, "acquire", s.lock, conformanceTTL); answer != "yes" {
			return fmt.Errorf("acquire is answered %q", answer)
		}
		return nil
	})
	s.onQuorum(s.lock)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
	if waits {
		s.answers(s.first, "yes")
		s.onQuorum(awaited)
		s.says(s.first, "yes", "release", awaited)
		s.gone(awaited)
	}
}

// survivesTwoMasters: locks are kept, extended, released and taken while two
// masters are dead, and after they have come back with nothing in memory.
func (s *conformanceRun) survivesTwoMasters() {
	s.says(s.first, "yes", "acquire", s.lock, unextendedTTL)
	s.onQuorum(s.lock)
	if s.err != nil {
		return
	}
	killed := s.cluster.masters[quorum:]
	for _, master := range killed {
		master.crash()
	}
	s.says(s.second, "no", "acquire", s.lock, conformanceTTL)
	s.sees(s.first, "yes", "mine", s.lock)
	if s.sees(s.first, "yes", "extend", s.lock, extendedTTL) {
		s.lasts(s.lock, (unextendedTTL+extendedTTL)/2*time.Millisecond)
	}
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
	s.says(s.second, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	for _, master := range killed {
		master.start(s.t)
	}
	s.says(s.first, "no", "acquire", s.lock, conformanceTTL)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
}

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
			if master.proc.running() && satisfied(ctx, master, key) {
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

// leavesNothing wants no key of the library's locks on any master, and on the
// upstream only what belongs there. What has a short TTL of its own may be left
// to it.
func (s *conformanceRun) leavesNothing(locks string) {
	s.patiently("nothing is left", func() error {
		for _, server := range s.cluster.servers() {
			left, err := server.direct.Keys(s.t.Context(), "*"+locks+"*").Result()
			if err != nil {
				return err
			}
			left = slices.DeleteFunc(left, func(key string) bool {
				return server == s.cluster.upstream && slices.ContainsFunc(s.library.upstreamKeys, func(glob string) bool {
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
