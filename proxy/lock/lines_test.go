package lock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/datatest"
)

// The scripts in testdata/lines show who waits for whom, in fake time. Masters are fakes: who holds a lock, how many
// elements a list has, and who has asked to hear of a key. The events:
//
//	x holds k [in 3]         a client that is not in line has the lock (in a database)
//	a acquires k [l] [in 3] [at once] [for 3s] [leaving at its last try] [panicking at its last try]
//	                         a client tries, and waits if it is refused; for one minute without a time
//	a pops k [l] [members]   a client takes an element from any of these keys, or waits for one
//	k is freed [in 3]        a release, of which nobody hears yet
//	k is released [in 3]     a release through this process
//	k gets 2                 elements are pushed, of which nobody hears yet
//	k is announced           the masters tell of a change, if somebody wants to hear of k; "any" is any key
//	k is announced too late  they tell of a change that nobody waits for any more
//	tries take 10ms          each try takes so long
//	nobody can know          what a try finds: no quorum; "all is known" ends that
//	a leaves                 the client goes
//	notices end              the masters announce nothing more
//	the process ends
//	after 300ms [with 4 to 8 tries each]
//	tries come in any order  several heads try at one moment, so their tries are printed by name
//	times are drawn          a client polls after pauses that are drawn, so neither times are printed
//	                         nor numbers of tries, unless these are not as many as the event says
//
// Below an event stand the tries in their order, and the ends of those that wait no longer.
func TestLines(t *testing.T) {
	datatest.Play(t, "testdata/lines/*.txt", func(t *testing.T, told *datatest.Script) {
		synctest.Test(t, func(t *testing.T) {
			m := &masters{holders: map[string]string{}, lists: map[string]int{}, clients: map[string]context.CancelFunc{}, closing: make(chan struct{})}
			m.available.Store(true)
			m.lines = newLines(Changes{Available: m.available.Load, Subscribe: func(changed func([]byte)) Tracker {
				m.changed = changed
				return m
			}})
			for event := range told.Events {
				if !m.happens(t, event) {
					t.Fatalf("nobody knows the event %q", event)
				}
				synctest.Wait()
				m.print(told)
			}
			for _, leave := range m.clients {
				leave()
			}
			synctest.Wait()
			if len(m.lines.keys) > 0 || m.lines.places.Load() != 0 || len(m.tracked) > 0 {
				t.Errorf("lines are left: %v, tracked: %q", m.lines.keys, m.tracked)
			}
		})
	})
}

// masters are fake masters with locks and lists. Each event is over before the next, and one goroutine at a time tries.
type masters struct {
	lines     *lines
	changed   func(key []byte)
	available atomic.Bool
	closing   chan struct{}
	takes     time.Duration // how long a try takes
	clients   map[string]context.CancelFunc

	mu       sync.Mutex
	holders  map[string]string // by database and key
	lists    map[string]int    // elements by key
	unknown  bool              // nobody can know who holds a lock
	tries    []string
	ends     []string
	tracked  []string
	anyOrder bool // several heads try at one moment
	noTimes  bool // a client polls, after pauses that are drawn
	fewest   int  // tries of each client that the present event should see
	most     int  // 0: any number
}

func (m *masters) Track(_ context.Context, keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if !slices.Contains(m.tracked, key) {
			m.tracked = append(m.tracked, key)
		}
	}
}

func (m *masters) Untrack(keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tracked = slices.DeleteFunc(m.tracked, func(key string) bool { return slices.Contains(keys, key) })
}

// happens makes an event happen.
func (m *masters) happens(t *testing.T, event string) bool {
	words := strings.Fields(event)
	who, verb, rest := words[0], words[1], words[2:]
	db := 0
	if n := len(rest); n > 1 && rest[n-2] == "in" {
		db, _ = strconv.Atoi(rest[n-1])
	}
	switch said := strings.Join(words[1:], " "); {
	case verb == "holds":
		m.holders[lockName(db, []byte(rest[0]))] = who
	case verb == "acquires":
		m.begin(t, who, m.acquisition(who, said))
	case verb == "pops":
		m.begin(t, who, m.pop(who, said))
	case strings.HasPrefix(said, "is freed"):
		delete(m.holders, lockName(db, []byte(who)))
	case strings.HasPrefix(said, "is released"):
		delete(m.holders, lockName(db, []byte(who)))
		m.lines.released(db, []byte(who))
	case verb == "gets":
		n, _ := strconv.Atoi(rest[0])
		m.lists[who] += n
	case said == "is announced too late":
		m.changed([]byte(who))
	case event == "any is announced":
		m.changed(nil)
	case said == "is announced":
		if slices.Contains(m.tracked, who) {
			m.changed([]byte(who))
		}
	case strings.HasPrefix(event, "tries take "):
		m.takes = datatest.Duration(words[2])
	case event == "nobody can know", event == "all is known":
		m.unknown = who == "nobody"
	case said == "leaves":
		m.clients[who]()
	case event == "tries come in any order":
		m.anyOrder = true
	case event == "times are drawn":
		m.noTimes = true
	case event == "notices end":
		m.available.Store(false)
	case event == "the process ends":
		close(m.closing)
	case who == "after":
		if len(rest) > 0 {
			_, _ = fmt.Sscanf(strings.Join(rest, " "), "with %d to %d tries each", &m.fewest, &m.most)
		}
		time.Sleep(datatest.Duration(verb))
	default:
		return false
	}
	return true
}

func lockName(db int, key []byte) string { return fmt.Sprintf("%d %s", db, key) }

// A waiter is a client's request, and what a try of it comes to.
type waiter struct {
	waitRequest
	try    func() tryResult // with the mutex of the masters
	says   map[tryResult]string
	lastly string // what happens at the third try, which gets the lock
}

// read reads the words after the verb: keys, and how the client waits.
func (w *waiter) read(said string) {
	w.Wait = time.Minute
	said, w.lastly, _ = strings.Cut(said, " at its last try ")
	options := map[string]func(value string){
		"in":      func(value string) { w.DB, _ = strconv.Atoi(value) },
		"for":     func(value string) { w.Wait, _ = time.ParseDuration(value) },
		"at":      func(string) { w.AtOnce = true },
		"members": nil,
	}
	words := strings.Fields(said)[1:]
	for i := 0; i < len(words); i++ {
		option, isOption := options[words[i]]
		switch {
		case words[i] == "members":
			w.Kind = forMembers
		case isOption:
			i++
			option(words[i])
		default:
			w.Keys = append(w.Keys, []byte(words[i]))
		}
	}
}

// acquisition takes all its locks or none. A client that asks at once may take its own again.
func (m *masters) acquisition(name, said string) *waiter {
	w := &waiter{says: map[tryResult]string{tryGranted: "granted", tryRefused: "refused", tryUndecided: "undecided"}}
	w.read(said)
	tries := 0
	w.try = func() tryResult {
		if tries++; tries == 3 && w.lastly != "" {
			m.clients[name]()
			if w.lastly == "it panics" {
				panic("defect")
			}
			return tryGranted
		}
		if m.unknown {
			return tryUndecided
		}
		for _, key := range w.Keys {
			if by := m.holders[lockName(w.DB, key)]; by != "" && (by != name || !w.AtOnce) {
				return tryRefused
			}
		}
		for _, key := range w.Keys {
			m.holders[lockName(w.DB, key)] = name
		}
		return tryGranted
	}
	return w
}

// pop takes an element from the first of its keys that has one.
func (m *masters) pop(_, said string) *waiter {
	w := &waiter{says: map[tryResult]string{tryRefused: "got nothing", tryAgain: "knows nothing", tryUndecided: "took one"}}
	w.AtOnce, w.Kind = true, forElements
	w.read(said)
	w.try = func() tryResult {
		if m.unknown {
			return tryAgain
		}
		for _, key := range w.Keys {
			if m.lists[string(key)] > 0 {
				m.lists[string(key)]--
				return tryUndecided
			}
		}
		return tryRefused
	}
	return w
}

// begin starts a client, which waits or has its end when the event is over.
func (m *masters) begin(t *testing.T, name string, w *waiter) {
	ctx, leave := context.WithCancel(t.Context())
	m.clients[name] = leave
	w.Closing = m.closing
	waited, began := "", time.Now()
	if w.Kind == forLock {
		w.Waits = func() { waited += ", waited" }
	} else {
		w.Closing = nil
	}
	go func() {
		defer func() { _ = recover() }()
		last := tryUndecided
		tried := m.lines.serve(ctx, w.waitRequest, func() tryResult {
			time.Sleep(m.takes)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.tries = append(m.tries, name)
			last = w.try()
			return last
		})
		said := w.says[last]
		switch {
		case ctx.Err() != nil && last != tryGranted:
			said = "is gone"
		case !tried:
			said = "unheard"
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		took := fmt.Sprintf(" after %v", time.Since(began))
		if m.noTimes {
			took = ""
		}
		m.ends = append(m.ends, name+" "+said+took+waited)
	}()
}

// print prints what has come of an event.
func (m *masters) print(told *datatest.Script) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.anyOrder {
		slices.Sort(m.tries)
	}
	if m.noTimes {
		m.tries = m.often()
	}
	if len(m.tries) > 0 {
		told.Printf("tries: %s", strings.Join(m.tries, " "))
	}
	slices.Sort(m.ends)
	for _, end := range m.ends {
		told.Printf("%s", end)
	}
	m.tries, m.ends = nil, nil
}

// often returns who tried, and how often if that is not as often as was expected.
func (m *masters) often() (each []string) {
	slices.Sort(m.tries)
	for len(m.tries) > 0 {
		name, n := m.tries[0], 0
		for n < len(m.tries) && m.tries[n] == name {
			n++
		}
		if m.tries = m.tries[n:]; n < m.fewest || m.most > 0 && n > m.most {
			name = fmt.Sprintf("%s %d times", name, n)
		}
		each = append(each, name)
	}
	m.fewest, m.most = 0, 0
	return each
}
