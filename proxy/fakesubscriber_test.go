package proxy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// fakeMasters publish to sessions what a test says, as redlock's listener does.
type fakeMasters struct {
	mu          sync.Mutex
	subscribers map[*fakeSubscriber]struct{}
	asked       []string
	asking      func(what string) // called before an ask returns; may be nil
}

type fakeSubscriber struct {
	masters *fakeMasters
	hear    func(redlock.Event)
	wants   map[string]bool // "channel NAME", "pattern NAME", "key NAME", "prefix NAME"
	hearing sync.Mutex      // held while it hears
	closed  bool
}

func (m *fakeMasters) configure(c *testConfig) {
	m.subscribers = make(map[*fakeSubscriber]struct{})
	c.Subscribes = func(hear func(redlock.Event)) pubsub.Source {
		s := &fakeSubscriber{masters: m, hear: hear, wants: make(map[string]bool)}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.subscribers[s] = struct{}{}
		return s
	}
}

func (s *fakeSubscriber) ask(wants bool, kind string, names ...string) {
	m := s.masters
	m.mu.Lock()
	for _, name := range names {
		s.wants[kind+" "+name] = wants
	}
	what := map[bool]string{true: "+", false: "-"}[wants] + kind + " " + strings.Join(names, " ")
	m.asked = append(m.asked, what)
	asking := m.asking
	m.mu.Unlock()
	if asking != nil {
		asking(what)
	}
}

func (s *fakeSubscriber) Subscribe(_ context.Context, names ...string) {
	s.ask(true, "channel", names...)
}
func (s *fakeSubscriber) Unsubscribe(names ...string) { s.ask(false, "channel", names...) }
func (s *fakeSubscriber) PSubscribe(_ context.Context, names ...string) {
	s.ask(true, "pattern", names...)
}
func (s *fakeSubscriber) PUnsubscribe(names ...string)                 { s.ask(false, "pattern", names...) }
func (s *fakeSubscriber) Track(_ context.Context, keys ...string)      { s.ask(true, "key", keys...) }
func (s *fakeSubscriber) Untrack(keys ...string)                       { s.ask(false, "key", keys...) }
func (s *fakeSubscriber) TrackPrefix(_ context.Context, prefix string) { s.ask(true, "prefix", prefix) }
func (s *fakeSubscriber) UntrackPrefix(prefix string)                  { s.ask(false, "prefix", prefix) }

func (s *fakeSubscriber) Close() {
	s.hearing.Lock()
	s.closed = true
	s.hearing.Unlock()
	s.masters.mu.Lock()
	defer s.masters.mu.Unlock()
	delete(s.masters.subscribers, s)
}

// publish is a message on the masters.
func (m *fakeMasters) publish(channel, payload string) {
	m.tell(func(s *fakeSubscriber) (events []redlock.Event) {
		if s.wants["channel "+channel] {
			events = append(events, redlock.Event{Kind: redlock.EventMessage, Channel: []byte(channel), Payload: []byte(payload)})
		}
		for want, wanted := range s.wants {
			if pattern, ok := strings.CutPrefix(want, "pattern "); ok && wanted && resp.GlobMatch(pattern, []byte(channel)) {
				events = append(events, redlock.Event{Kind: redlock.EventPatternMessage, Pattern: []byte(pattern), Channel: []byte(channel), Payload: []byte(payload)})
			}
		}
		return events
	})
}

// change is a change of a key on the masters; "": nobody knows of which.
func (m *fakeMasters) change(key string) {
	m.tell(func(s *fakeSubscriber) []redlock.Event {
		if key == "" {
			return []redlock.Event{{Kind: redlock.EventChanged}}
		}
		wanted := s.wants["key "+key]
		for want := range s.wants {
			prefix, ok := strings.CutPrefix(want, "prefix ")
			wanted = wanted || ok && s.wants[want] && strings.HasPrefix(key, prefix)
		}
		if !wanted {
			return nil
		}
		return []redlock.Event{{Kind: redlock.EventChanged, Key: []byte(key)}}
	})
}

func (m *fakeMasters) gap() {
	m.tell(func(*fakeSubscriber) []redlock.Event { return []redlock.Event{{Kind: redlock.EventGap}} })
}

func (m *fakeMasters) each(do func(*fakeSubscriber)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.subscribers {
		do(s)
	}
}

// tell has each subscriber hear of some events, with no lock held that its methods need, except for Close.
func (m *fakeMasters) tell(of func(*fakeSubscriber) []redlock.Event) {
	all := map[*fakeSubscriber][]redlock.Event{}
	m.each(func(s *fakeSubscriber) { all[s] = of(s) })
	for s, events := range all {
		s.tell(events)
	}
}

func (s *fakeSubscriber) tell(events []redlock.Event) {
	s.hearing.Lock()
	defer s.hearing.Unlock()
	for _, e := range events {
		if !s.closed {
			s.hear(e)
		}
	}
}

// requests are what the masters were asked for so far, in order.
func (m *fakeMasters) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// expectNobody waits until no session listens any more.
func (m *fakeMasters) expectNobody(t *testing.T) {
	t.Helper()
	eventually(t, "nobody listens", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.subscribers) == 0
	})
}
