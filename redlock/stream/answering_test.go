package stream

import (
	"log/slog"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// A quietOwner is an Owner that does nothing.
type quietOwner struct{ Owner }

func (quietOwner) Name() string           { return "quiet" }
func (quietOwner) Timeout() time.Duration { return 0 }

// Calls behind the defect in their batch fail, and the stream keeps their debts.
func TestADefectFailsTheRestOfItsBatch(t *testing.T) {
	owed := &Debt{Exact: []byte("x"), Key: "lock"}
	heard := map[string]error{}
	s := New(Options{Owner: quietOwner{}, Log: slog.New(slog.DiscardHandler)})
	asker := func(name string, defect bool) Asker {
		return owingAsker{owed, func(err error) {
			heard[name] = err
			if defect {
				panic("defect")
			}
		}}
	}
	batch := []Call{
		{Replies: 1, Asker: asker("first", false)},
		{Replies: 1, Asker: asker("second", true)},
		{Replies: 1, Asker: asker("third", false)},
	}
	s.calls = append([]Call{}, batch...)
	func() {
		defer func() {
			if reason := recover(); reason != "defect" {
				t.Errorf("recovered %v", reason)
			}
		}()
		s.answer(batch, [][]byte{[]byte("+OK\r\n"), []byte("+OK\r\n"), []byte("+OK\r\n")}, Judgement{})
	}()
	calls, sent := s.giveUpCalls(down)
	if debts := len(s.debts); len(calls) != 2 || sent != 2 || debts != 2 {
		t.Errorf("%d calls, %d of them sent, and %d debts are left of the two that were not answered", len(calls), sent, debts)
	}
	for i := range calls {
		calls[i].Asker.Answered(s, &calls[i], nil, Judgement{}, errLost)
	}
	if len(heard) != 3 || heard["first"] != nil || heard["second"] != nil || heard["third"] != errLost {
		t.Errorf("they heard %v", heard)
	}
}

type owingAsker struct {
	debt  *Debt
	hears func(error)
}

func (o owingAsker) Answered(_ *Stream, _ *Call, _ [][]byte, _ Judgement, err error) { o.hears(err) }
func (o owingAsker) Owed(*Call) *Debt                                                { return o.debt }

// The stream asks a master for no lock until a probe succeeds.
func TestAMasterThatIsProbedInVainIsNotAsked(t *testing.T) {
	s := New(Options{Owner: quietOwner{}})
	s.state = up
	for _, probe := range []struct {
		reply string
		asked bool
	}{{"-NOPERM you may not\r\n", false}, {":1\r\n", true}} {
		s.refuses = resp.IsError([]byte(probe.reply))
		if got := s.mayCreate(time.Now()); got != probe.asked {
			t.Errorf("after a probe that said %q it is asked: %v", probe.reply, got)
		}
	}
}
