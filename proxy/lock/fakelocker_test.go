package lock

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// fakeLocker records its requests and answers with the outcomes that the test sets.
type fakeLocker struct {
	answer  func(request any) redlock.Outcome // nil: everything is won
	blind   bool                              // a Watch finds no quorum
	deleted string                            // what a run deleted under k on some master

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
	o, since := redlock.Outcome{Verdict: redlock.Won}, time.Now()
	if f.answer != nil {
		o = f.answer(request)
	}
	if o.Since.IsZero() {
		o.Since = since
	}
	return o
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
	o := f.ask(r)
	if f.deleted != "" {
		r.Deleted([]byte("k"), []byte(f.deleted))
	}
	return o
}
func (f *fakeLocker) Token(_ context.Context, r redlock.TokenRequest) redlock.Outcome {
	return f.ask(r)
}
func (f *fakeLocker) Watch(context.Context, int, [][]byte) (*redlock.Watch, redlock.Outcome) {
	if f.blind {
		return nil, fakeLockerNoQuorum
	}
	return &redlock.Watch{}, redlock.Outcome{Verdict: redlock.Won}
}

// requests returns one line of words for each request. The order is fixed even if
// several were sent at once.
func (f *fakeLocker) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := make([]string, 0, len(f.asked))
	for _, request := range f.asked {
		lines = append(lines, describeRequest(request))
	}
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
		words = append(words, "run", r.DB, fmt.Sprintf("%s on %s", r.Args, r.Keys))
		flag(len(r.Scripts) > 0, "script "+string(bytes.Join(r.Scripts, nil)))
		flag(r.RESP3, "resp3")
		flag(r.ReadOnly, "readonly")
		flag(len(r.Deletes) > 0, fmt.Sprintf("deletes %s", r.Deletes))
	}
	return strings.TrimSuffix(fmt.Sprintln(words...), "\n")
}

// fakeLockerMeter records "kind verdict" for each command.
type fakeLockerMeter struct {
	mu       sync.Mutex
	commands []string
	rules    []string
	notes    []string // of long lives
	times    []string // of locks: by rule, held or waited for
}

func (m *fakeLockerMeter) LockCommand(kind, verdict, rule string, seconds float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seconds < 0 {
		verdict = "negative duration"
	}
	m.commands, m.rules = append(m.commands, kind+" "+verdict), append(m.rules, rule)
}

func (m *fakeLockerMeter) Refused(code string)       { m.note("refused " + code) }
func (m *fakeLockerMeter) LimitReached(limit string) { m.note("limit " + limit) }
func (m *fakeLockerMeter) Waits(rule string) func(string, time.Duration) {
	m.note("waits")
	return func(outcome string, after time.Duration) { m.note(outcome + " after " + after.String()) }
}
func (m *fakeLockerMeter) LockWaited(rule string, after time.Duration) { m.time("waited", rule, after) }
func (m *fakeLockerMeter) LockHeld(rule string, after time.Duration)   { m.time("held", rule, after) }
func (m *fakeLockerMeter) time(what, rule string, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times = append(m.times, fmt.Sprintf("%s %s %s", rule, what, after))
}
func (m *fakeLockerMeter) LockWithoutTTL()       { m.note("without TTL") }
func (m *fakeLockerMeter) LockBeyondQuarantine() { m.note("beyond quarantine") }

func (m *fakeLockerMeter) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, what)
}

// fakeLockerPlane is a lock plane on a fake locker. Every key is a lock key.
type fakeLockerPlane struct {
	*Plane
	routes *atomic.Pointer[route.Router] // in force
	locker *fakeLocker
	meter  *fakeLockerMeter
	log    *strings.Builder
}

func newFakeLockerPlane(answer func(request any) redlock.Outcome, rules ...route.Rule) fakeLockerPlane {
	log := new(strings.Builder)
	locker, meter := &fakeLocker{answer: answer}, new(fakeLockerMeter)
	handler := slog.NewTextHandler(io.Writer(log), &slog.HandlerOptions{Level: slog.LevelDebug})
	routes := new(atomic.Pointer[route.Router])
	routes.Store(&route.Router{Rules: rules})
	plane := New(Config{
		Locker: locker, Router: routes.Load, MaxQuarantine: func() time.Duration { return 10 * time.Minute }, MaxReply: func() int64 { return 4 << 20 },
		Scripts: NewScripts(1<<20, nil), Meter: meter, Log: slog.New(handler),
	})
	return fakeLockerPlane{Plane: plane, routes: routes, locker: locker, meter: meter, log: log}
}

// ask runs a command that is given as words. "\x20" is a blank in a word.
func (p fakeLockerPlane) ask(t *testing.T, line string) string {
	t.Helper()
	return string(p.Do(t.Context(), nil, p.call(line)))
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

// won, lost and the others answer every request alike.
func fakeLockerAnswers(o redlock.Outcome) func(any) redlock.Outcome {
	return func(any) redlock.Outcome { return o }
}
