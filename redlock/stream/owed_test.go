package stream

import (
	"bytes"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// limitOf returns the limit with which a debt is sent.
func limitOf(t *testing.T, d *Debt, now time.Time, later bool, skew time.Duration) int64 {
	t.Helper()
	words := bytes.Fields(d.append(nil, now, later, skew))
	limit, err := strconv.ParseInt(string(words[len(words)-1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// A release that a master gets late deletes the lock that it is for, and no later one that it can tell
// from that.
func TestWhatALateReleaseSpares(t *testing.T) {
	now := time.Now()
	const skew = 50 * time.Millisecond
	owned, shared := string(bytes.Repeat([]byte("x"), ShortValue)), string(bytes.Repeat([]byte("x"), ShortValue-1))
	ends := func(in time.Duration) *Lifetime { return NewLifetime(now.Add(in)) }
	ending := (5*time.Second + skew).Milliseconds() + resp.ExpiryTolerance
	for _, row := range []struct {
		name  string
		debt  Debt
		later bool
		want  int64
	}{
		{"right behind its acquire", Debt{Value: shared, Life: ends(5 * time.Second)}, false, AnyLifetime},
		{"of a lock that ends", Debt{Value: owned, Life: ends(5 * time.Second)}, true, ending},
		{"of a lock that never ends", Debt{Value: owned}, true, AnyLifetime},
		{"behind a write that may come late", Debt{Value: owned, Life: ends(5 * time.Second), Blind: true}, true, AnyLifetime},
		{"of a shared value that ends", Debt{Value: shared, Life: ends(5 * time.Second)}, true, ending},
		{"of a shared value, behind a write that may come late", Debt{Value: shared, Life: ends(5 * time.Second), Blind: true}, true, ending},
		{"of a shared value that has ended", Debt{Value: shared, Life: ends(-time.Minute)}, true, resp.ExpiryTolerance},
		{"of a shared value that never ends", Debt{Value: shared}, true, onlyPermanent},
		{"an expiry to come", Debt{Script: ExpireScript, Value: owned, Ttl: now.Add(time.Second)}, true, 1000},
		{"an expiry that is over", Debt{Script: ExpireScript, Value: owned, Ttl: now.Add(-time.Second)}, true, 1},
	} {
		if got := limitOf(t, &row.debt, now, row.later, skew); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// A debt is Blind if a write of its key was sent, and nobody knows whether it was executed.
func TestADebtIsBlindBehindAWriteThatWasSent(t *testing.T) {
	s := &Stream{log: slog.New(slog.DiscardHandler)}
	call := func(writes string) Call {
		return Call{Writes: []string{writes}, Asker: &payment{debt: &Debt{Key: "key"}}}
	}
	for _, row := range []struct {
		name  string
		calls []Call
		sent  int
		want  []bool
	}{
		{"of its own call", []Call{call("key")}, 1, []bool{true}},
		{"of a call before", []Call{call("key"), call("other")}, 2, []bool{true, true}},
		{"of another key", []Call{call("other")}, 1, []bool{false}},
		{"not sent", []Call{call("key")}, 0, []bool{false}},
		{"sent before one that was not", []Call{call("other"), call("key")}, 1, []bool{false, false}},
	} {
		debts := s.owed(row.calls, row.sent)
		for i, want := range row.want {
			if len(debts) != len(row.want) || debts[i].Blind != want {
				t.Errorf("%s: debt %d of %d: Blind is not %v", row.name, i, len(debts), want)
			}
		}
	}
}
