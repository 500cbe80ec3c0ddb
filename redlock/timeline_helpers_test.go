package redlock

import (
	"context"
	"net"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/toymaster"
	"testing"
)

// What timelines in Go have in common.

func (w *timeline) acquireKey(name, value string) Outcome {
	return w.locker.Acquire(context.Background(), AcquireRequest{Key: []byte(name), Value: []byte(value), TTL: 10 * second})
}

// acquireIn asks for a lock in a database.
func acquireIn(t *testing.T, l *Locker, db int, value string) Verdict {
	return l.Acquire(t.Context(), AcquireRequest{DB: db, Key: []byte(key), Value: []byte(value), TTL: 20 * second}).Verdict
}

// tokenOf asks for a token for a value of the timeline's lock.
func tokenOf(t *testing.T, l *Locker, db int, value string) Outcome {
	return l.Token(t.Context(), TokenRequest{DB: db, Key: []byte(key), Value: []byte(value)})
}

// mustToken asks for a token for tokenA, which must be larger than every one before.
func (w *timeline) mustToken(l *Locker, before int64) int64 {
	w.t.Helper()
	o := tokenOf(w.t, l, 0, tokenA)
	if o.Verdict != Won || o.Number <= before {
		w.t.Fatalf("after the token %d: %+v", before, o)
	}
	return o.Number
}

// raiseTokens adds to the tokens on record.
func raiseTokens(w *timeline, by int64) {
	for _, m := range w.masters {
		text, token := marker.CutToken(m.Value(marker.Key))
		mark, _ := marker.Parse(text)
		mark.Token = token + by
		m.Put(marker.Key, mark.String(), 0)
	}
}

// joining makes a server that could become a master.
func (w *timeline) joining(name string) Master {
	k := toymaster.NewLink("p-"+name, newMaster(name), 6, w.World)
	return Master{Name: name, Dial: func(ctx context.Context) (net.Conn, error) { return k.Dial(ctx) }}
}

// standings returns each master's state for the first Locker, as one letter: Voting,
// Quarantined, Starting, Unreachable, Rejected.
func (w *timeline) standings(l *Locker) string {
	letters := ""
	for _, m := range l.Status().Masters {
		letters += string("AUQCB"[m.State])
	}
	return letters
}

func (w *timeline) wantStandings(l *Locker, want string) {
	w.t.Helper()
	if got := w.standings(l); got != want {
		w.t.Errorf("the masters stand %s, want %s: %+v", got, want, l.Status())
	}
}

// settle waits until connections are back and masters are checked.
func (w *timeline) settle() { w.sleep(5 * second) }
