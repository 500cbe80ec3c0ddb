package lock

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// fakeLocker records its requests, and has them answered.
type fakeLocker struct {
	answer func(request any) fakeAnswer

	mu    sync.Mutex
	asked []any
}

// These requests have no struct in package redlock.
type (
	fakeLockerGet    struct{ DB, Key any }
	fakeLockerExists struct{ DB, Key any }
)

func (f *fakeLocker) ask(request any) redlock.Outcome {
	f.mu.Lock()
	f.asked = append(f.asked, request)
	f.mu.Unlock()
	since := time.Now()
	o := f.answer(request)
	if r, isRun := request.(redlock.RunRequest); isRun && o.deleted != "" {
		r.Deleted([]byte("k"), []byte(o.deleted))
	}
	o.Since = since
	return o.Outcome
}

func (f *fakeLocker) Acquire(_ context.Context, r redlock.AcquireRequest) redlock.Outcome {
	return f.ask(r)
}
func (f *fakeLocker) Release(_ context.Context, r redlock.ReleaseRequest) redlock.Outcome {
	return f.ask(r)
}
func (f *fakeLocker) Get(_ context.Context, db int, key []byte) redlock.Outcome {
	return f.ask(fakeLockerGet{db, string(key)})
}
func (f *fakeLocker) Exists(_ context.Context, db int, key []byte) redlock.Outcome {
	return f.ask(fakeLockerExists{db, string(key)})
}
func (f *fakeLocker) TTL(_ context.Context, r redlock.TTLRequest) redlock.Outcome { return f.ask(r) }
func (f *fakeLocker) Extend(_ context.Context, r redlock.ExtendRequest) redlock.Outcome {
	return f.ask(r)
}
func (f *fakeLocker) Renew(_ context.Context, r redlock.RenewRequest) redlock.Outcome {
	return f.ask(r)
}
func (f *fakeLocker) Run(_ context.Context, r redlock.RunRequest) redlock.Outcome {
	return f.ask(r)
}
func (f *fakeLocker) Token(_ context.Context, r redlock.TokenRequest) redlock.Outcome {
	return f.ask(r)
}
func (f *fakeLocker) Watch(context.Context, int, [][]byte) (*redlock.Watch, redlock.Outcome) {
	o := f.answer(nil).Outcome
	if o.Verdict == redlock.NoQuorum {
		return nil, o
	}
	return &redlock.Watch{}, o
}

// requests returns one line of words for each request since it was called last. The order is fixed even
// if several were sent at once.
func (f *fakeLocker) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := make([]string, 0, len(f.asked))
	for _, request := range f.asked {
		lines = append(lines, describeRequest(request))
	}
	f.asked = nil
	slices.Sort(lines)
	return lines
}

func describeRequest(request any) string {
	words := []any{}
	flag := func(set bool, name string) {
		if set {
			words = append(words, name)
		}
	}
	switch r := request.(type) {
	case redlock.AcquireRequest:
		words = append(words, "acquire", r.DB, string(r.Key), string(r.Value), r.TTL)
		flag(r.Get, "get")
	case redlock.ReleaseRequest:
		words = append(words, "release", r.DB, string(r.Key))
		flag(r.Get, "get")
	case fakeLockerGet:
		words = append(words, "get", r.DB, r.Key)
	case fakeLockerExists:
		words = append(words, "exists", r.DB, r.Key)
	case redlock.TTLRequest:
		words = append(words, r.Name, r.DB, string(r.Key))
	case redlock.ExtendRequest:
		words = append(words, "extend", r.DB, string(r.Key), r.TTL)
		flag(r.Persist, "persist")
		flag(r.Condition != "", "if "+r.Condition)
	case redlock.TokenRequest:
		words = append(words, "token", r.DB, string(r.Key), string(r.Value))
	case redlock.RunRequest:
		words = append(words, "run", r.DB, described(r)+fmt.Sprintf(" on %s", r.Keys))
		flag(len(r.Scripts) > 0, "script "+string(bytes.Join(r.Scripts, nil)))
		flag(r.RESP3, "resp3")
		flag(r.ReadOnly, "readonly")
		flag(r.Scrap, "scraps strays")
		flag(len(r.Deletes) > 0, fmt.Sprintf("deletes %s", r.Deletes))
	}
	return strings.TrimSuffix(fmt.Sprintln(words...), "\n")
}

// described is the command of a run, or the commands of a transaction.
func described(r redlock.RunRequest) string {
	if r.Transaction == nil {
		return fmt.Sprintf("%s", r.Args)
	}
	var commands []string
	for _, args := range r.Transaction {
		commands = append(commands, fmt.Sprintf("%s", args))
	}
	return "{" + strings.Join(commands, " ") + "}"
}

// fakeLockerMeter records what is counted.
type fakeLockerMeter struct {
	mu      sync.Mutex
	counted []string
}

func (m *fakeLockerMeter) LockCommand(kind, verdict, rule string, seconds float64) {
	if seconds < 0 {
		verdict = "negative duration"
	}
	if rule != "" {
		rule = " by " + rule
	}
	m.note(kind + " " + verdict + rule)
}

func (m *fakeLockerMeter) Refused(code string)       { m.note("refused " + code) }
func (m *fakeLockerMeter) LimitReached(limit string) { m.note("limit " + limit) }
func (m *fakeLockerMeter) Waits(rule string) func(string, time.Duration) {
	m.note("waits by " + rule)
	return func(outcome string, after time.Duration) { m.note(outcome + " after " + after.String()) }
}
func (m *fakeLockerMeter) LockWaited(rule string, after time.Duration) {
	m.note("a lock of " + rule + " waited for " + after.String())
}
func (m *fakeLockerMeter) LockHeld(rule string, after time.Duration) {
	m.note("a lock of " + rule + " held for " + after.String())
}
func (m *fakeLockerMeter) LockWithoutTTL()       { m.note("a lock without TTL") }
func (m *fakeLockerMeter) LockBeyondQuarantine() { m.note("a lock beyond quarantine") }

func (m *fakeLockerMeter) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counted = append(m.counted, what)
}

// flush returns what was counted since it was called last, by name.
func (m *fakeLockerMeter) flush() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	counted := m.counted
	m.counted = nil
	slices.Sort(counted)
	return counted
}

// fakeLockerPlane is a lock plane on a fake locker. Every key is a lock key.
type fakeLockerPlane struct {
	*Plane
	routes *atomic.Pointer[route.Router] // in force
	locker *fakeLocker
	meter  *fakeLockerMeter
	log    *safeLog
}

// safeLog is what was logged, by commands that run at once.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *safeLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newFakeLockerPlane(answer func(request any) fakeAnswer, rules ...route.Rule) fakeLockerPlane {
	log := new(safeLog)
	locker, meter := &fakeLocker{answer: answer}, new(fakeLockerMeter)
	handler := slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})
	routes := new(atomic.Pointer[route.Router])
	routes.Store(&route.Router{Rules: rules})
	plane := New(Config{
		Locker: locker, Router: routes.Load, MaxQuarantine: func() time.Duration { return 10 * time.Minute }, MaxReply: func() int64 { return 4 << 20 },
		Scripts: NewScripts(1<<20, nil), Meter: meter, Log: slog.New(handler),
	})
	return fakeLockerPlane{Plane: plane, routes: routes, locker: locker, meter: meter, log: log}
}

// call is fakeLockerCall with the rule of the first key.
func (p *Plane) call(line string) Command {
	call := fakeLockerCall(line)
	if key, _, _ := call.firstLock(); key != nil {
		call.Route.Rule = p.Router().Rules.Find(call.DB, key)
	}
	return call
}

// fakeLockerCall routes a command as if every key in it were a lock key.
func fakeLockerCall(line string) Command {
	var args [][]byte
	for word := range strings.FieldsSeq(line) {
		args = append(args, []byte(strings.NewReplacer(`\x20`, " ", `""`, "").Replace(word)))
	}
	call := Command{Args: args, Route: route.Route{Plane: route.Locks, Spec: route.Builtin().Lookup(args)}}
	if call.Route.Spec != nil {
		call.Route.Keys, _ = call.Route.Spec.AppendKeys(nil, args)
	}
	call.Route.Lock = slices.Repeat([]bool{true}, len(call.Route.Keys))
	return call
}
