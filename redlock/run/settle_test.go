package run

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

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
	for n := range 2 * maxKnownScripts {
		scripts.byText[strconv.Itoa(n)] = &knownScript{}
	}
	if scripts.of([]byte("one more"), nil); len(scripts.byText) > maxKnownScripts {
		t.Errorf("%d scripts are remembered", len(scripts.byText))
	}
}

// A late deletion releases if a quorum has deleted the same lock with it, and one of that quorum in time.
func TestWhichLateDeletionsRelease(t *testing.T) {
	const inTime, late = quorum.Answered, quorum.Awaited
	type did struct {
		key    int
		master int
		was    string
		state  quorum.State
	}
	for name, row := range map[string]struct {
		all  []did
		want bool // of the last one
	}{
		"two in time and one late":       {[]did{{0, 0, "me", inTime}, {0, 1, "me", inTime}, {0, 2, "me", late}}, true},
		"one in time and two late":       {[]did{{0, 0, "me", inTime}, {0, 1, "me", late}, {0, 2, "me", late}}, true},
		"all late":                       {[]did{{0, 0, "me", late}, {0, 1, "me", late}, {0, 2, "me", late}}, false},
		"all in time":                    {[]did{{0, 0, "me", inTime}, {0, 1, "me", inTime}, {0, 2, "me", inTime}}, false},
		"too few":                        {[]did{{0, 0, "me", inTime}, {0, 1, "me", late}}, false},
		"another key":                    {[]did{{1, 0, "me", inTime}, {1, 1, "me", inTime}, {0, 2, "me", late}}, false},
		"another lock":                   {[]did{{0, 0, "you", inTime}, {0, 1, "you", inTime}, {0, 2, "me", late}}, false},
		"a lock that ends later":         {[]did{{0, 0, "me/9000", inTime}, {0, 1, "me/9000", inTime}, {0, 2, "me/9100", late}}, false},
		"a lock that ends just later":    {[]did{{0, 0, "me/9000", inTime}, {0, 1, "me/9000", inTime}, {0, 2, "me/9020", late}}, true},
		"a queue of those that wait":     {[]did{{0, 0, "[me", inTime}, {0, 1, "[me", inTime}, {0, 2, "[me", late}}, false},
		"when those wait that are in it": {[]did{{0, 0, "<me", inTime}, {0, 1, "<me", inTime}, {0, 2, "<me", late}}, false},
	} {
		d, b := &deletions{}, &ballot.Ballot[effect.Result]{Answers: make([]quorum.Answer[effect.Result], 5)}
		got := false
		for _, x := range row.all {
			b.Answers[x.master].State = x.state
			got = d.byQuorum(b, x.key, x.master, imageOf(t, x.was), 50*time.Millisecond)
		}
		if got != row.want {
			t.Errorf("%s: it releases: %v", name, got)
		}
	}
}

// A master that may not vote, or could not serve, has nothing on record that counts.
func TestTheTTLOfARunIsOnRecordWhereVotesCount(t *testing.T) {
	u := runnerOfNothing(t)
	x := resultOf(t, ":1\r\n", "->me/5000")
	for state, want := range map[quorum.State]bool{quorum.Answered: true, quorum.Discounted: false, quorum.Unable: false} {
		b := &ballot.Ballot[effect.Result]{}
		for i := range 3 {
			a := quorum.Answer[effect.Result]{State: quorum.Answered, Value: x, LongestTTL: time.Hour}
			if i == 2 {
				a.State = state
			}
			b.Answers = append(b.Answers, a)
		}
		b.Answers = append(b.Answers, quorum.Answer[effect.Result]{State: quorum.Unknown}, quorum.Answer[effect.Result]{State: quorum.Unknown})
		if covered := u.coverRun(b, &Request{}); covered != want {
			t.Errorf("with a vote that is %v: on record: %v", state, covered)
		}
	}
}
