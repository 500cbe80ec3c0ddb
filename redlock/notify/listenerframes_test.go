package notify

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

func TestAnswersMustFitTheQuestions(t *testing.T) {
	sub, tracking := &feed{masters: make([]confirmation, 1)}, &feed{changes: true}
	frame := func(words ...string) string {
		f := fmt.Appendf(nil, ">%d\r\n", len(words)+1)
		for _, word := range words {
			f = resp.AppendBulk(f, word)
		}
		return string(f) + ":1\r\n"
	}
	for _, row := range []struct {
		expected expectation
		frame    string
		fits     bool
	}{
		{expectation{feed: sub}, frame("psubscribe", "*"), true},
		{expectation{feed: sub}, "-NOPERM no\r\n", true},
		{expectation{feed: sub, ends: true}, frame("punsubscribe", "*"), true},
		{expectation{feed: sub, ends: true}, frame("psubscribe", "*"), false},
		{expectation{feed: sub}, frame("punsubscribe", "*"), false},
		{expectation{feed: sub}, "+OK\r\n", false},
		{expectation{feed: sub}, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", false},
		{expectation{}, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", true},
		{expectation{}, "+PONG\r\n", true},
		{expectation{}, frame("psubscribe", "*"), false},
		{expectation{feed: tracking}, "+OK\r\n", true},
	} {
		l := New(t.Context(), nil, make([]Source, 1), func() time.Duration { return time.Second }, slog.New(slog.DiscardHandler))
		r := &listener{hub: l, master: named("m"), expected: []expectation{row.expected}, wake: make(chan struct{}, 1)}
		err := r.hear([]byte(row.frame), time.Now())
		if (err == nil) != row.fits || row.fits && len(r.expected) != 0 {
			t.Errorf("%q while %q is expected: %v, and %d answers are expected", row.frame, row.expected.verb(), err, len(r.expected))
		}
	}
}

// A push from a master may be anything.
func FuzzFrames(f *testing.F) {
	for _, text := range []string{">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
		">2\r\n$10\r\ninvalidate\r\n_\r\n", "*0\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "!5\r\nERR x\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var s resp.Scanner
		if n, done, err := s.Scan(frame); err != nil || !done || n != len(frame) {
			return
		}
		l := New(t.Context(), nil, []Source{named("m")}, func() time.Duration { return 0 }, slog.New(slog.DiscardHandler))
		r := &listener{hub: l, master: l.masters[0]}
		_ = r.hear(frame, time.Now())
	})
}

// A namedSource is a Source that cannot be reached.
type named string

func (n named) Name() string          { return string(n) }
func (n named) Embedded() bool        { return false }
func (n named) Server() stream.Server { return stream.Server{} }
