package redlock

import (
	"log/slog"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// A quietOwner has nothing to say.
type quietOwner struct{ streamOwner }

func (quietOwner) Name() string           { return "quiet" }
func (quietOwner) Timeout() time.Duration { return 0 }
func (quietOwner) Queued(int64)           {}

// What stood behind the defect in its batch is failed, and what it is owed is kept.
func TestADefectFailsTheRestOfItsBatch(t *testing.T) {
	owed := &debt{exact: []byte("x"), key: "lock"}
	heard := map[string]error{}
	s := newStream(streamOptions{owner: quietOwner{}, log: slog.New(slog.DiscardHandler)})
	asker := func(name string, defect bool) asker {
		return owingAsker{owed, func(err error) {
			heard[name] = err
			if defect {
				panic("defect")
			}
		}}
	}
	batch := []call{
		{replies: 1, asker: asker("first", false)},
		{replies: 1, asker: asker("second", true)},
		{replies: 1, asker: asker("third", false)},
	}
	s.calls = append([]call{}, batch...)
	func() {
		defer func() {
			if reason := recover(); reason != "defect" {
				t.Errorf("recovered %v", reason)
			}
		}()
		s.answer(batch, [][]byte{[]byte("+OK\r\n"), []byte("+OK\r\n"), []byte("+OK\r\n")}, judgement{})
	}()
	calls, sent := s.giveUpCalls(down)
	if debts := len(s.debts); len(calls) != 2 || sent != 2 || debts != 2 {
		t.Errorf("%d calls, %d of them sent, and %d debts are left of the two that were not answered", len(calls), sent, debts)
	}
	for i := range calls {
		calls[i].asker.answered(s, &calls[i], nil, judgement{}, errLost)
	}
	if len(heard) != 3 || heard["first"] != nil || heard["second"] != nil || heard["third"] != errLost {
		t.Errorf("they heard %v", heard)
	}
}

type owingAsker struct {
	debt  *debt
	hears func(error)
}

func (o owingAsker) answered(_ *dbStream, _ *call, _ [][]byte, _ judgement, err error) { o.hears(err) }
func (o owingAsker) owed(*call) *debt                                                  { return o.debt }

// Until a probe succeeds no lock is asked of a master.
func TestAMasterThatIsProbedInVainIsNotAsked(t *testing.T) {
	s := newStream(streamOptions{owner: quietOwner{}})
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
