package stream

import (
	"log/slog"
	"maps"
	"testing"
	"time"
)

// A quietOwner is an Owner that does nothing.
type quietOwner struct{ Owner }

func (quietOwner) MaxReply() int64        { return 1 << 10 }
func (quietOwner) Name() string           { return "quiet" }
func (quietOwner) Timeout() time.Duration { return 0 }

// A defect costs only its call, and the stream keeps the debt of that.
func TestADefectCostsOnlyItsCall(t *testing.T) {
	heard := map[string]error{}
	s := New(Options{Owner: quietOwner{}, Log: slog.New(slog.DiscardHandler)})
	asker := func(name string) Asker {
		return owingAsker{&Debt{Key: name}, func(err error) {
			heard[name] = err
			if name == "second" {
				panic("defect")
			}
		}}
	}
	batch := []Call{
		{Replies: 1, Asker: asker("first")},
		{Replies: 1, Asker: asker("second")},
		{Replies: 1, Asker: asker("third")},
	}
	s.calls = append([]Call{}, batch...)
	err := s.answer(batch, [][]byte{[]byte("+OK\r\n"), []byte("+OK\r\n"), []byte("+OK\r\n")}, Judgement{})
	calls, _ := s.giveUpCalls(down)
	if err != errDefect || len(calls) > 0 || len(s.debts) != 1 || s.debts[0].Key != "second" {
		t.Errorf("%v: %d calls are unanswered, and %d debts are left", err, len(calls), len(s.debts))
	}
	if want := map[string]error{"first": nil, "second": nil, "third": nil}; !maps.Equal(heard, want) {
		t.Errorf("they heard %v", heard)
	}
}

type owingAsker struct {
	debt  *Debt
	hears func(error)
}

func (o owingAsker) Answered(_ *Stream, _ *Call, _ [][]byte, _ Judgement, err error) { o.hears(err) }
func (o owingAsker) Owed(*Call) *Debt                                                { return o.debt }
