package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// The TTLs of locks, in milliseconds: one that no run outlives, and one before
// a lock is extended. expiryLimit is how long one waits for a lock that has
// expired.
const (
	conformanceTTL = 120_000
	unextendedTTL  = 20_000
	extendedTTL    = 60_000
	expiryLimit    = 8_000
)

// inVain is how many milliseconds a waiter waits for a lock that stays held. A
// Redisson whose subscription is confirmed only when that is over cancels it,
// and then also for who waits next.
const inVain = 1500

// waitersRest is how long after its first try a waiter has done all that it
// does before it rests. Nothing depends on it but how much a run shows.
const waitersRest = 500 * time.Millisecond

// errUnsupported says that the library has no means for what it was asked.
var errUnsupported = errors.New("unsupported")

// conformanceScenarios are what every library goes through, in this order. The
// last two break masters.
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
	{"three masters killed", (*conformanceRun).losesQuorum},
}

// scenariosOfServers do to the masters what cannot be done to embedded ones.
var scenariosOfServers = []string{"two masters killed", "three masters killed"}

// A conformanceRun is one scenario of one library. After the first step that
// did not go as it must, err says what happened and no further step is taken.
type conformanceRun struct {
	t             *testing.T
	cluster       *cluster
	proxy         *proxyProcess
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
	s.says(s.second, "yes", "wait", s.lock, conformanceTTL, conformanceTTL)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.says(s.second, "no", "wait", s.lock, conformanceTTL, inVain)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
	s.getsWhatIsReleased(0)
	s.getsWhatIsReleased(waitersRest)
}

// getsWhatIsReleased has the holder release so long after the waiter's first
// try. Soon after it, libraries are between their looks; later they rest until
// they are woken or try again. The limit is longer than a client may take to
// answer, so that a waiter whom nobody wakes does not get by with a last try.
func (s *conformanceRun) getsWhatIsReleased(after time.Duration) {
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	tried := s.watch(s.lock)
	s.tells(s.second, "wait", s.lock, conformanceTTL, conformanceTTL)
	tried()
	pause(s.t.Context(), after)
	s.says(s.first, "yes", "release", s.lock)
	s.answers(s.second, "yes")
	s.onQuorum(s.lock)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
}

// expires: what a dead client held comes free by itself, for those who try and
// for those who wait. What a living one holds does not, where the library sees
// to it. Some libraries wait for a message that nobody sends when a lock
// expires, and try a last time when their limit is over.
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
	waits := s.asks(s.first, "wait", awaited, conformanceTTL, expiryLimit) != "unsupported"
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
		s.tells(s.first, "wait", awaited, conformanceTTL, ttl+expiryLimit)
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

// survivesTwoMasters: locks are kept, extended, released, waited for and taken
// while two masters are dead, and after they have come back with nothing in
// memory.
func (s *conformanceRun) survivesTwoMasters() {
	s.says(s.first, "yes", "acquire", s.lock, unextendedTTL)
	s.onQuorum(s.lock)
	s.allVote()
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
	if _, none := s.library.skips["waiting"]; !none {
		s.getsWhatIsReleased(0)
	}
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

// losesQuorum: with a majority of masters dead nobody can know whether a lock is
// held. The application sees an error and takes nothing for "not granted", where
// its library lets errors through. When the masters are back, so are locks.
func (s *conformanceRun) losesQuorum() {
	s.keys(s.lock)
	s.allVote()
	if s.err != nil {
		return
	}
	killed := s.cluster.masters[:quorum]
	for _, master := range killed {
		master.crash()
	}
	s.vote(masterCount - quorum)
	s.cannotTell(s.first, "acquire", s.lock, conformanceTTL)
	for _, master := range killed {
		master.start(s.t)
	}
	s.allVote()
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
}
