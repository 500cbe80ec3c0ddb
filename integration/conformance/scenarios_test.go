package conformance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// The TTLs of locks are in milliseconds: one longer than any run, and one for a lock before
// its extension. expiryLimit is the longest wait for a lock that has expired.
const (
	conformanceTTL = 120_000
	unextendedTTL  = 20_000
	extendedTTL    = 60_000
	expiryLimit    = 8_000
)

// inVain is the wait, in milliseconds, for a lock that stays held. It must not be too short:
// if a Redisson's subscription is confirmed only after the wait, Redisson cancels it, also
// for the next waiter.
const inVain = 1500

// waitersRest is the time after its first try by which a waiter has done everything that
// it does before it rests. No result depends on it. A wrong value only tests less.
const waitersRest = 500 * time.Millisecond

// errUnsupported: the library has no means for the request.
var errUnsupported = errors.New("unsupported")

// conformanceScenarios are the scenarios of every library, in this order. The last two
// break masters.
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

// scenariosOfServers break masters in ways that are impossible with embedded ones.
var scenariosOfServers = []string{"two masters killed", "three masters killed"}

// A conformanceRun is one scenario of one library. At the first step with a wrong result,
// err says what happened, and no further step runs.
type conformanceRun struct {
	t             *testing.T
	cluster       *rig.Cluster
	proxy         *rig.Proxy
	library       conformanceLibrary
	first, second *conformanceClient
	start         func(name string) (*conformanceClient, error) // starts one more client
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

// releases: a released lock is free for everybody, also for its last holder.
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

// inspects asks the library about a lock. The library must be able to answer "held" or
// "mine". One of them is enough.
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

// waits: a waiter that waits before the holder releases gets the lock.
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

// getsWhatIsReleased has the holder release a time after the waiter's first try. Soon after
// that try, libraries are between two attempts. Later they rest until a wake-up or their
// next try. The waiter's limit is longer than Patience for its answer, so that a waiter
// that nobody wakes cannot succeed with a last try.
func (s *conformanceRun) getsWhatIsReleased(after time.Duration) {
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	tried := s.watch(s.lock)
	s.tells(s.second, "wait", s.lock, conformanceTTL, conformanceTTL)
	tried()
	rig.Pause(s.t.Context(), after)
	s.says(s.first, "yes", "release", s.lock)
	s.answers(s.second, "yes")
	s.onQuorum(s.lock)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
}

// expires: a dead client's lock becomes free by itself, for clients that try and for clients
// that wait. A living client's lock does not, if the library renews it. Some libraries wait
// for a message that nobody sends when a lock expires. They try a last time when their
// limit is over.
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

// survivesTwoMasters: while two masters are dead, and after they have come back empty,
// clients keep, extend, release, await and take locks.
func (s *conformanceRun) survivesTwoMasters() {
	s.says(s.first, "yes", "acquire", s.lock, unextendedTTL)
	s.onQuorum(s.lock)
	s.allVote()
	if s.err != nil {
		return
	}
	killed := s.cluster.Masters[rig.Quorum:]
	for _, master := range killed {
		master.Kill()
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
		master.Start(s.t)
	}
	s.says(s.first, "no", "acquire", s.lock, conformanceTTL)
	s.says(s.second, "yes", "release", s.lock)
	s.gone(s.lock)
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
}

// losesQuorum: with a majority of the masters dead, nobody can know whether a lock is held.
// The application must see an error and not mistake it for "not granted", if its library
// lets errors through. When the masters are back, locks work again.
func (s *conformanceRun) losesQuorum() {
	s.keys(s.lock)
	s.allVote()
	if s.err != nil {
		return
	}
	killed := s.cluster.Masters[:rig.Quorum]
	for _, master := range killed {
		master.Kill()
	}
	s.vote(rig.MasterCount - rig.Quorum)
	s.cannotTell(s.first, "acquire", s.lock, conformanceTTL)
	for _, master := range killed {
		master.Start(s.t)
	}
	s.allVote()
	s.says(s.first, "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	s.says(s.first, "yes", "release", s.lock)
	s.gone(s.lock)
}
