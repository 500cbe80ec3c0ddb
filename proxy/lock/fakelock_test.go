package lock

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/redlock"
)

// A fakeAnswer is an outcome, and what a run deleted under k on some master.
type fakeAnswer struct {
	redlock.Outcome
	deleted string
}

// A fakeLock is how masters answer: always alike, by key, or as masters with one lock or one list.
type fakeLock struct {
	changed  func(key []byte)
	silent   atomic.Bool
	draining chan struct{}
	tracked  map[string]bool

	mu       sync.Mutex
	always   *fakeAnswer           // nil: won, or as the lock or the list is
	outcomes map[string]fakeAnswer // by key
	takes    time.Duration
	then     func() // is called once when masters have answered
	keeps    string // what masters keep: a lock, or a list
	holder   string // "": the lock is free; "?": nobody can know
	elements []string
	wrong    bool // the key is of another type
	stray    bool // each try puts a stray element back, which is a change that is told 15 ms later
	told     bool // such a change will be told
}

func (x *fakeLock) drain() chan struct{} {
	x.draining, x.tracked, x.outcomes = make(chan struct{}), map[string]bool{}, map[string]fakeAnswer{}
	return x.draining
}

func (x *fakeLock) Track(_ context.Context, keys ...string) { x.track(true, keys) }
func (x *fakeLock) Untrack(keys ...string)                  { x.track(false, keys) }

func (x *fakeLock) track(tracked bool, keys []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, key := range keys {
		x.tracked[key] = tracked
	}
}

// happens makes an event of the masters happen.
func (x *fakeLock) happens(who, said string) bool {
	x.mu.Lock()
	pushed, pushes := strings.CutPrefix(said, "gets ")
	switch {
	case said == "keep a lock", said == "keep a list":
		x.keeps, x.always = strings.TrimPrefix(said, "keep a "), nil
	case said == "holds it":
		x.holder = strings.TrimPrefix(who, "nobody")
	case who == "nobody" && said == "can know":
		x.holder = "?"
	case pushes:
		x.elements = append(x.elements, strings.Fields(pushed)...)
	case who == "an" && said == "element is on too few masters":
		x.stray = true
	case who == "the" && said == "key is of another type":
		x.wrong = true
	case who == "notices":
		x.silent.Store(true)
	case who == "the" && said == "process drains":
		close(x.draining)
	case said == "is announced":
		changed := x.tracked[who]
		x.mu.Unlock()
		if changed {
			x.changed([]byte(who))
		}
		return true
	default:
		x.mu.Unlock()
		return false
	}
	x.mu.Unlock()
	return true
}

// answers answers a request; nil is a Watch.
func (x *fakeLock) answers(request any) fakeAnswer {
	x.mu.Lock()
	takes := x.takes
	x.mu.Unlock()
	time.Sleep(takes)
	x.mu.Lock()
	defer x.mu.Unlock()
	o := fakeAnswer{Outcome: redlock.Outcome{Verdict: redlock.Won}}
	switch byKey, known := x.outcomes[keyOf(request)]; {
	case known:
		o = byKey
	case x.always != nil:
		o = *x.always
	case x.keeps == "lock":
		o.Outcome = x.onLock(request)
	case x.keeps == "list":
		o.Outcome = x.onList(request)
	}
	if _, isRun := request.(redlock.RunRequest); isRun && o.Verdict == redlock.Won && o.Reply == nil && o.Err == "" {
		o.Reply = []byte("+OK\r\n")
	}
	if then := x.then; then != nil {
		x.then = nil
		then()
	}
	return o
}

// keyOf is the key of a request on one key.
func keyOf(request any) string {
	switch r := request.(type) {
	case redlock.ReleaseRequest:
		return string(r.Key)
	case fakeLockerGet:
		return r.Key.(string)
	case fakeLockerExists:
		return r.Key.(string)
	case redlock.RunRequest:
		if len(r.Keys) > 0 {
			return string(r.Keys[0])
		}
	}
	return ""
}

// onLock answers as masters with one lock.
func (x *fakeLock) onLock(request any) redlock.Outcome {
	won, lost := redlock.Outcome{Verdict: redlock.Won}, redlock.Outcome{Verdict: redlock.Lost}
	if x.holder == "?" {
		return noQuorum
	}
	switch r := request.(type) {
	case redlock.AcquireRequest:
		if x.holder != "" {
			lost.Value = []byte(x.holder)
			return lost
		}
		x.holder = string(r.Value)
	case fakeLockerExists:
		if x.holder == "" {
			return lost
		}
	case redlock.RunRequest:
		if r.Transaction == nil && len(r.Args) > 4 {
			return x.script(r)
		}
		x.holder = ""
	case redlock.ReleaseRequest:
		if x.holder == "" {
			return lost
		}
		x.holder = ""
	}
	return won
}

// script runs a script on the one lock. Its text is what it does. Its first argument is the
// client, which may take its own lock again.
func (x *fakeLock) script(r redlock.RunRequest) redlock.Outcome {
	o, client := redlock.Outcome{Verdict: redlock.Won, Reply: []byte(":0\r\n")}, string(r.Args[4])
	effect := redlock.Effect{Key: r.Keys[0]}
	switch text := string(r.Args[1]); {
	case text == "take" && x.holder == "":
		x.holder, effect.Change = client, redlock.KeyCreated
	case text == "take" && x.holder == client:
		effect.Change = redlock.KeyProlonged
	case text == "release" && x.holder == client:
		x.holder, effect.Change = "", redlock.KeyDeleted
	case text == "refuse":
		return o // although the lock is free
	case x.holder != "" && r.Effects:
		o.Kept = r.Keys[:1]
		return o
	default:
		return o
	}
	o.Reply = []byte(":1\r\n")
	if r.Effects {
		o.Effects = []redlock.Effect{effect}
	}
	return o
}

// onList answers as masters with one list, of which each command takes the first element. What it finds nothing with is
// the null of the command.
func (x *fakeLock) onList(request any) redlock.Outcome {
	r, _ := request.(redlock.RunRequest)
	reply := nullArray
	switch {
	case r.RESP3:
		reply = nullRESP3
	case strings.EqualFold(string(r.Args[0]), "BLMOVE"):
		reply = "$-1\r\n"
	}
	switch {
	case x.holder == "?":
		return noQuorum
	case x.wrong:
		reply = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	case len(x.elements) > 0:
		reply = "+" + x.elements[0] + "\r\n"
		x.elements = x.elements[1:]
	case x.stray && !r.Scrap && !x.told:
		x.told = true
		time.AfterFunc(15*time.Millisecond, func() {
			x.mu.Lock()
			x.told = false
			x.mu.Unlock()
			x.changed(r.Keys[0])
		})
	}
	return redlock.Outcome{Verdict: redlock.Won, Reply: []byte(reply)}
}

var noQuorum = redlock.Outcome{Verdict: redlock.NoQuorum, Voting: 2, Answered: 2, Asked: 5, Needed: 3}

// outcomeOf reads an outcome: won, lost or no quorum, and what else it says.
//
//	value held                  number 7              error WRONGTYPE x      reply :1\r\n
//	creates k v 1h              what a run did to a key: the value and the TTL may be missing; also prolongs, reenters,
//	                            replaces and deletes
//	by a-uuid:17                the holder that a hash names
//	attempts k v                a release by value without a quorum
//	keeps k                     what a run found and left      deletes v somewhere
//	refused, abandoned, too long, lives 10m
func outcomeOf(t *testing.T, text string) fakeAnswer {
	o := fakeAnswer{Outcome: redlock.Outcome{Verdict: redlock.Won}}
	changes := map[string]redlock.Change{"creates": redlock.KeyCreated, "prolongs": redlock.KeyProlonged, "reenters": redlock.KeyReentered, "replaces": redlock.KeyReplaced, "deletes": redlock.KeyDeleted}
	for each := range strings.SplitSeq(text, ", ") {
		verb, rest, _ := strings.Cut(each, " ")
		words := strings.Fields(rest)
		effect := redlock.Effect{Change: changes[verb]}
		if len(words) > 0 {
			effect.Key = []byte(words[0])
		}
		if len(words) > 1 && words[1] != "-" {
			effect.Value = []byte(words[1])
		}
		_, isChange := changes[verb]
		if isChange && len(words) > 2 {
			effect.TTL = datatest.Duration(words[2])
		}
		switch {
		case each == "won":
		case each == "lost":
			o.Verdict = redlock.Lost
		case each == "no quorum":
			o.Outcome = noQuorum
		case verb == "value":
			o.Value = []byte(rest)
		case verb == "number":
			o.Number, _ = strconv.ParseInt(rest, 10, 64)
		case verb == "error":
			o.Err = rest
		case verb == "reply":
			o.Reply = []byte(strings.ReplaceAll(rest, `\r\n`, "\r\n") + "\r\n")
		case isChange && strings.HasSuffix(rest, " somewhere"):
			o.deleted = words[0]
		case isChange:
			o.Effects = append(o.Effects, effect)
		case verb == "by":
			o.Effects[len(o.Effects)-1].Holder = []byte(rest)
		case verb == "attempts":
			effect.Change = redlock.KeyDeleted
			o.Attempted = append(o.Attempted, effect)
		case verb == "keeps":
			o.Kept = append(o.Kept, []byte(rest))
		case each == "refused":
			o.Refused = true
		case each == "abandoned":
			o.Abandoned = true
		case each == "too long":
			o.TooLong = 1
		case verb == "lives":
			o.Lives = datatest.Duration(rest)
		default:
			t.Fatalf("no outcome is %q", each)
		}
	}
	if len(o.Effects) > 0 && o.Reply == nil {
		o.Reply = []byte(":1\r\n")
	}
	return o
}

// renewLocks has the rules renew every lock of a connection.
func (s *stage) renewLocks() {
	s.Leases = lease.New(lease.Config{
		Locker: s.locker,
		Rule:   func(int, []byte) lease.Rule { return lease.Rule{Renew: time.Hour} },
		Limits: func() lease.Limits { return lease.Limits{MasterTimeout: time.Second} },
		Log:    slog.New(slog.DiscardHandler),
	})
}

// holder is what a client's connection holds.
func (s *stage) holder(name string) *lease.Holder {
	client := s.client(name)
	if client.holder == nil {
		client.holder = s.Leases.NewHolder(func() {})
	}
	return client.holder
}
