package run

import (
	"sync/atomic"
	"testing"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
)

// A try that was not won may have deleted the lock on some master. That is put back, but
// another client may take the lock in between. Then the next try finds no lock. That is
// no answer, because the client would hear that it never held the lock.
func TestWhoMayHaveReleasedIsNotToldThatItHeldNothing(t *testing.T) {
	there, gone := []effect.Image{{Dump: []byte("a lock"), PTTL: effect.NoExpiry}}, []effect.Image{effect.Missing}
	refusal := quorum.Answer[effect.Result]{State: quorum.Answered, Value: effect.Result{Reply: []byte(":0\r\n"), Before: there, After: there}}
	deletion := quorum.Answer[effect.Result]{State: quorum.Answered, Value: effect.Result{Reply: []byte(":1\r\n"), Before: there, After: gone}}
	for _, row := range []struct {
		verdict ballot.Verdict // of the first try
		state   quorum.State   // of its answer
		want    ballot.Verdict
	}{
		{ballot.NoQuorum, quorum.Answered, ballot.NoQuorum},
		{ballot.NoQuorum, quorum.Unable, ballot.NoQuorum}, // such as NOSCRIPT behind a DEL of the same transaction
		{ballot.Won, quorum.Answered, ballot.Lost},
	} {
		r := &Request{gaveUp: new(atomic.Bool), earlier: &earlier{deleted: map[int]bool{}}}
		deletion.State = row.state
		r.note(deletion, row.verdict)
		refusals := []quorum.Answer[effect.Result]{refusal, refusal, refusal}
		// Refusals by masters that hold different things, beside deletions.
		some, others := refusal, refusal
		some.Value.After, others.Value.After = []effect.Image{{Dump: []byte("some"), PTTL: effect.NoExpiry}}, gone
		some.Value.Before, others.Value.Before = some.Value.After, gone
		deletion.State = quorum.Answered
		for _, answers := range [][]quorum.Answer[effect.Result]{refusals, {deletion, deletion, refusal, some, others}} {
			if o := r.outcome(ballot.Outcome{Verdict: ballot.Lost}, answers); o.Verdict != row.want {
				t.Errorf("%v after %v, want %v", o.Verdict, row.verdict, row.want)
			}
		}
	}
}

// A script that created a key acquires, unless it also deleted one, as a release does
// that wakes a waiting client. A script too long to be remembered counts as an acquire.
func TestWhatAScriptDidIsRemembered(t *testing.T) {
	made := func(before, after effect.Image) effect.Result {
		return effect.Result{Before: []effect.Image{before}, After: []effect.Image{after}}
	}
	key := effect.Image{Dump: []byte("a lock"), PTTL: effect.NoExpiry}
	var scripts knownScripts
	for text, row := range map[string]struct {
		did      effect.Result
		acquires bool
	}{
		"takes":    {made(effect.Missing, key), true},
		"releases": {made(key, effect.Missing), false},
		"reads":    {made(key, key), false},
	} {
		r := &Request{gaveUp: new(atomic.Bool), earlier: &earlier{deleted: map[int]bool{}}, script: scripts.of([]byte(text), nil)}
		r.note(quorum.Answer[effect.Result]{State: quorum.Discounted, Value: row.did}, ballot.Lost)
		if got := scripts.of([]byte(text), nil).acquires.Load(); got != row.acquires || r.goesNext() == row.acquires {
			t.Errorf("%s: %v", text, got)
		}
	}
	if long := scripts.of(make([]byte, maxKnownScript+1), nil); !long.acquires.Load() {
		t.Error("a script that is not remembered goes next")
	}
}
