package run

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

func wordsOf(command string) (words [][]byte) {
	for _, word := range strings.Fields(command) {
		words = append(words, []byte(word))
	}
	return words
}

// Replies of commands that only read are compared by kind, unless a script gives them. Lists
// whose order is up to the master are compared as sets.
func TestWhichRepliesAreAlike(t *testing.T) {
	for _, row := range []struct {
		command string
		reads   bool
		want    effect.Rule
	}{
		{"SRANDMEMBER set", true, effect.Rule{Observes: true}},
		{"LPOP list", false, effect.Rule{}},
		{"EVAL_RO text 1 key", true, effect.Rule{}},
		{"EVALSHA_RO sum 1 key", true, effect.Rule{}},
		{"hgetall hash", true, effect.Rule{Observes: true, Unordered: 2}},
		{"HKEYS hash", true, effect.Rule{Observes: true, Unordered: 1}},
		{"HVALS hash", true, effect.Rule{Observes: true, Unordered: 1}},
		{"SMEMBERS set", true, effect.Rule{Observes: true, Unordered: 1}},
		{"SINTER set", true, effect.Rule{Observes: true, Unordered: 1}},
		{"SUNION set", true, effect.Rule{Observes: true, Unordered: 1}},
		{"SDIFF set", true, effect.Rule{Observes: true, Unordered: 1}},
	} {
		r := &Request{Args: wordsOf(row.command), ReadOnly: row.reads}
		if got := r.voting(); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.command, got, row.want)
		}
	}
	if got := (&Request{Transaction: [][][]byte{}}).voting(); got != (effect.Rule{}) {
		t.Errorf("a transaction: %+v", got)
	}
}

// A master's error may say that it has forgotten a script, or cannot serve. Then it has no vote.
func TestResultsThatAreNoVotes(t *testing.T) {
	const missing = "-NOSCRIPT No matching script\r\n"
	script, transaction, deletion := wordsOf("script"), [][][]byte{wordsOf("EVALSHA sum 1 key")}, wordsOf("key")
	for _, row := range []struct {
		name     string
		r        Request
		x        effect.Result
		reloaded bool
		want     error
		reply    string
	}{
		{"a vote", Request{Scripts: script}, effect.Result{Reply: []byte(":1\r\n")}, false, nil, ":1\r\n"},
		{"it has forgotten", Request{Scripts: script}, effect.Result{Reply: []byte(missing)}, false, ballot.ErrNoScript, missing},
		{"it was told", Request{Scripts: script}, effect.Result{Reply: []byte(missing)}, true, nil, missing},
		{"nobody knows the text", Request{}, effect.Result{Reply: []byte(missing)}, false, nil, missing},
		{"in a transaction", Request{Scripts: script, Transaction: transaction}, effect.Result{Reply: []byte("*1\r\n" + missing)}, false, ballot.ErrNoScript, "*1\r\n" + missing},
		{"another error in a transaction", Request{Scripts: script, Transaction: transaction}, effect.Result{Reply: []byte("*1\r\n-ERR no\r\n")}, false, nil, "*1\r\n-ERR no\r\n"},
		{"a script's own words", Request{Scripts: script}, effect.Result{Reply: []byte("*1\r\n" + missing)}, false, nil, "*1\r\n" + missing},
		{"it cannot serve", Request{}, effect.Result{Failed: true}, false, ballot.ErrUnable, ""},
		{"and what it did is unknown", Request{}, effect.Result{Failed: true, Blind: true}, false, ballot.ErrBlind, ""},
		{"aborted", Request{}, effect.Result{Aborted: true, Reply: []byte("*-1\r\n")}, false, nil, "*-1\r\n"},
		{"aborted, maybe by what its client does not watch", Request{Deletes: deletion}, effect.Result{Aborted: true, Reply: []byte("*-1\r\n")}, false, nil, ""},
		{"it deleted", Request{Deletes: deletion}, effect.Result{Reply: []byte(":1\r\n")}, false, nil, ":1\r\n"},
	} {
		if err := row.r.read(&row.x, nil, row.reloaded); err != row.want || string(row.x.Reply) != row.reply {
			t.Errorf("%s: %v %q", row.name, err, row.x.Reply)
		}
	}
	if err := (&Request{}).read(&effect.Result{Failed: true}, io.ErrUnexpectedEOF, false); err != io.ErrUnexpectedEOF {
		t.Errorf("what cannot be read: %v", err)
	}
}

// A request goes out once more to masters that had forgotten its script, but not if it was won.
// If it deletes whatever it finds, it does so only if no master can have executed it.
func TestWhatMayGoOutOnceMore(t *testing.T) {
	for _, row := range []struct {
		verdict      ballot.Verdict
		once, gaveUp bool
		state        quorum.State
		want         bool
	}{
		{ballot.NoQuorum, false, true, quorum.Unknown, true},
		{ballot.Won, false, false, quorum.Answered, false},
		{ballot.Lost, false, false, quorum.Answered, false},
		{ballot.NoQuorum, true, false, quorum.Answered, true},
		{ballot.NoQuorum, true, true, quorum.Answered, false},
		{ballot.NoQuorum, true, false, quorum.Unknown, false},
	} {
		r := &Request{once: row.once, gaveUp: new(atomic.Bool)}
		r.gaveUp.Store(row.gaveUp)
		if got := r.mayGoAgain(row.verdict, []quorum.Answer[effect.Result]{{State: row.state}}); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

func TestOutcomes(t *testing.T) {
	acquires, reads := &knownScript{}, &knownScript{}
	acquires.acquires.Store(true)
	const won, lost, none = ballot.Won, ballot.Lost, ballot.NoQuorum
	for _, row := range []struct {
		name    string
		r       Request
		verdict ballot.Verdict
		reply   string
		did     string
		want    ballot.Verdict
		refused bool
		effects string
	}{
		{"created", Request{script: acquires}, won, ":1\r\n", "->me/5000", won, false, "created k0 me 5s"},
		{"refused", Request{script: acquires}, won, ":0\r\n", "you>you", won, true, "kept k0"},
		{"refused by one that has acquired nothing", Request{script: reads}, won, ":0\r\n", "you>you", won, false, "kept k0"},
		{"no script", Request{}, won, ":0\r\n", "you>you", won, false, "kept k0"},
		{"entered again", Request{}, won, ":2\r\n", "me:1>me:2", won, false, "reentered k0"},
		{"taken over", Request{}, won, ":1\r\n", "you:1>me:1", won, false, "replaced k0"},
		{"another string", Request{}, won, ":1\r\n", "you>me", won, false, "replaced k0"},
		{"deleted", Request{Deletes: wordsOf("k0")}, won, ":1\r\n", "me>-", won, false, "deleted k0"},
		{"given up in a moment", Request{}, won, "+OK\r\n", "me/9000>me/1", won, false, "deleted k0"},
		{"left alone in its last moment", Request{}, won, ":0\r\n", "me/1>me/1", won, false, "kept k0"},
		{"nothing to say", Request{Deletes: wordsOf("k0")}, won, "", "", none, false, ""},
		{"a quorum refused", Request{}, lost, ":0\r\n", "you>you", lost, false, ""},
		{"it changed something", Request{}, lost, ":0\r\n", "you>me", none, false, ""},
		{"released at last", Request{gaveUp: new(atomic.Bool)}, won, ":1\r\n", "me>-", won, false, "deleted k0"},
		{"maybe released before", Request{gaveUp: new(atomic.Bool)}, won, ":0\r\n", "->-", none, false, ""},
	} {
		r := row.r
		r.Keys, r.Effects = wordsOf("k0"), true
		if r.gaveUp == nil {
			r.gaveUp = new(atomic.Bool)
		} else {
			r.gaveUp.Store(true)
		}
		x := resultOf(t, row.reply, row.did)
		if row.reply == "" {
			x.Reply = nil
		}
		a := quorum.Answer[effect.Result]{State: quorum.Answered, Value: x}
		o := r.outcome(ballot.Outcome{Verdict: row.verdict}, []quorum.Answer[effect.Result]{a, a, a})
		var effects []string
		for _, e := range o.Effects {
			name := map[ballot.Change]string{ballot.KeyCreated: "created", ballot.KeyReplaced: "replaced", ballot.KeyReentered: "reentered", ballot.KeyDeleted: "deleted"}[e.Change]
			text := name + " " + string(e.Key)
			if e.Value != nil {
				text += fmt.Sprintf(" %s %v", e.Value, e.TTL)
			}
			effects = append(effects, text)
		}
		for _, key := range o.Kept {
			effects = append(effects, "kept "+string(key))
		}
		if got := strings.Join(effects, ", "); o.Verdict != row.want || o.Refused != row.refused || got != row.effects {
			t.Errorf("%s: %v, refused %v, %q", row.name, o.Verdict, o.Refused, got)
		}
	}
}

// A run that is not won may have deleted locks. Deleted hears of each, and which client held it.
func TestWhichDeletionsAreTold(t *testing.T) {
	var told []string
	r := &Request{Keys: wordsOf("string hash list kept ended"), gaveUp: new(atomic.Bool), earlier: &earlier{deleted: map[int]bool{}}}
	r.Deleted = func(key, value []byte) { told = append(told, string(key)+"="+string(value)) }
	x := resultOf(t, ":1\r\n", "me>- A:1>- [a>- me>me me/0>-")
	r.note(quorum.Answer[effect.Result]{State: quorum.Answered, Value: x}, ballot.NoQuorum)
	if got := strings.Join(told, " "); got != "string=me hash=A" {
		t.Errorf("told of %s", got)
	}
	if got := fmt.Sprint(r.earlier.deletedKeys()); got != "[0 1 2]" {
		t.Errorf("deleted %s", got)
	}
}

// A run is won only if some validity is left of what it wrote.
func TestARunThatTookTooLongIsNotWon(t *testing.T) {
	u := runnerOfNothing(t)
	for did, want := range map[string]ballot.Verdict{"->me/5000": ballot.Lost, "->me/9000": ballot.Won, "->me": ballot.Won} {
		a := quorum.Answer[effect.Result]{State: quorum.Answered, Value: resultOf(t, ":1\r\n", did)}
		if got := u.decideRun(&Request{}, []quorum.Answer[effect.Result]{a, a, a}, 5*time.Second); got != want {
			t.Errorf("%s: %v", did, got)
		}
	}
}

// If a master's answer is lost, only what nobody else can hold is taken back.
func TestPossibleGrants(t *testing.T) {
	const long = "sixteen-bytes..."
	answer := func(state quorum.State, did string) quorum.Answer[effect.Result] {
		return quorum.Answer[effect.Result]{State: state, Value: resultOf(t, ":1\r\n", did)}
	}
	for _, row := range []struct {
		name    string
		answers []quorum.Answer[effect.Result]
		want    string
	}{
		{"created", []quorum.Answer[effect.Result]{answer(quorum.Answered, "->"+long)}, long},
		{"created twice", []quorum.Answer[effect.Result]{answer(quorum.Discounted, "->"+long), answer(quorum.Answered, "->"+long)}, long},
		{"a short value", []quorum.Answer[effect.Result]{answer(quorum.Answered, "->"+long[1:])}, ""},
		{"a hash", []quorum.Answer[effect.Result]{answer(quorum.Answered, "->"+long+":1")}, ""},
		{"found", []quorum.Answer[effect.Result]{answer(quorum.Answered, long+">"+long)}, ""},
		{"refused before it ran", []quorum.Answer[effect.Result]{answer(quorum.Answered, "")}, ""},
	} {
		var values []string
		for _, d := range possibleGrants(row.answers, wordsOf("lock")) {
			values = append(values, d.Value)
		}
		if got := strings.Join(values, " "); got != row.want {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// A master that missed a won run deletes the lock that the others deleted or replaced, or gives it its new expiry.
func TestWhatAMasterIsToldThatMissedARun(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		did, want string
	}{
		{"me/5000>-", "release for a time"},
		{"me/0>-", "release for a time"},
		{"me>-", "release"},
		{"me/5000>me/9000", "expire in 9s"},
		{"me>me/9000", "expire in 9s, at last"},
		{"me/5000>me", ""},
		{"me/5000>me/0", ""},
		{"a-token-of-mine1/5000>you/9000", "release for a time"},
		{"a-token-of-mine1>you", "release"},
		{"a-token-of-mine>you", ""},
		{"1764140000000000>1764140000000001", "replace"},
		{"1764140000.25>1764140001.5", "replace"},
		{"1764140000.25/5000>1764140001.5", ""},
		{"1764140000.25>1764140001.5/9000", ""},
		{"1764140000.25>1764140000.25", ""},
		{"1000000000>1000000001", "replace"},
		{"999999999>1000000001", ""},
		{"12>13", ""},
		{"Infinity>13", ""},
		{"1e10>13", ""},
		{"me/5000>me/5000", ""},
		{"A:1>-", ""},
	} {
		got := ""
		for _, d := range missedRun(resultOf(t, ":1\r\n", row.did), wordsOf("lock"), now) {
			switch {
			case d.Exact != nil:
				got = "replace"
			case d.Script == stream.ReleaseScript && d.Life != nil:
				got = "release for a time"
			case d.Script == stream.ReleaseScript:
				got = "release"
			default:
				got = fmt.Sprint("expire in ", d.Ttl.Sub(now))
				if d.Endless {
					got += ", at last"
				}
			}
		}
		if got != row.want {
			t.Errorf("%s: %q", row.did, got)
		}
	}
}

// A script that only reads takes and releases nothing, whatever it does elsewhere.
func TestAScriptThatOnlyReadsIsNotLearned(t *testing.T) {
	text := []byte("return redis.call('del', KEYS[1])")
	for _, row := range []struct {
		name  string
		r     Request
		knows bool
	}{
		{"EVAL", Request{Args: [][]byte{[]byte("EVAL"), text}}, true},
		{"EVALSHA", Request{Args: wordsOf("EVALSHA sha"), Scripts: [][]byte{text}}, true},
		{"EVAL_RO", Request{Args: [][]byte{[]byte("EVAL_RO"), text}, ReadOnly: true}, false},
		{"EVALSHA_RO", Request{Args: wordsOf("EVALSHA_RO sha"), Scripts: [][]byte{text}, ReadOnly: true}, false},
		{"MULTI", Request{Transaction: [][][]byte{{[]byte("EVAL"), text}}}, false},
	} {
		if knows := row.r.scriptText() != nil; knows != row.knows {
			t.Errorf("%s: its script is known: %v", row.name, knows)
		}
	}
}

// A release whose own errors look like a master's is examined, because its reply alone does not
// show who speaks.
func TestReleasesThatAreRecognised(t *testing.T) {
	const release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return redis.error_reply('%s') end"
	for words, want := range map[string]bool{"NOTYOURS": true, "NOSCRIPT of mine": false, "READONLY of mine": false} {
		if k := readScript(fmt.Appendf(nil, release, words)); (k.release != nil) != want {
			t.Errorf("%s: recognised %v", words, k.release != nil)
		}
	}
	text := fmt.Appendf(nil, release, "NOTYOURS")
	for _, row := range []struct{ name, key, args string }{
		{"its key is not the request's", "lock", "1 another me"},
		{"an argument is missing", "", "1 "},
	} {
		r := &Request{Keys: [][]byte{[]byte(row.key)}, Args: append([][]byte{[]byte("EVAL"), text}, bytes.Split([]byte(row.args), []byte(" "))...), script: readScript(text)}
		if _, ok := runnerOfNothing(t).runRecognised(r); ok {
			t.Errorf("%s: it is not examined", row.name)
		}
	}
}

// Each script of a request is read, and no other word.
func TestScriptsThatReachTooFarAreRefused(t *testing.T) {
	const far, fine = "return(redis.call('flushall'))", "return(redis.call('get',KEYS[1]))"
	for _, row := range []struct {
		name    string
		r       Request
		refused bool
	}{
		{"EVAL", Request{Args: wordsOf("EVAL " + far + " 0")}, true},
		{"EVAL_RO", Request{Args: wordsOf("EVAL_RO " + far + " 1 k")}, true},
		{"the second text", Request{Args: wordsOf("EVALSHA sum 1 k"), Scripts: wordsOf(fine + " " + far)}, true},
		{"in a transaction", Request{Transaction: [][][]byte{wordsOf("EVAL " + fine + " 1 k"), wordsOf("EVAL " + far + " 1 k")}}, true},
		{"a fine one", Request{Args: wordsOf("EVAL " + fine + " 1 k")}, false},
		{"a key", Request{Args: wordsOf("SET " + far + " v")}, false},
		{"a sum", Request{Args: wordsOf("EVALSHA " + far + " 1 k")}, false},
	} {
		u := runnerOfNothing(t)
		if got := u.tooFar(&row.r); (got != "") != row.refused {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// A transaction deletes anyway if any of its scripts does.
func TestOneScriptThatDeletesAnywayIsEnough(t *testing.T) {
	const deletes, fine = "return(redis.call('del',KEYS[1]))", "return(redis.call('get',KEYS[1]))"
	for words, want := range map[string]bool{deletes + " " + fine: true, fine + " " + deletes: true, fine: false} {
		r := Request{Scripts: wordsOf(words)}
		if refusal := runnerOfNothing(t).tooFar(&r); refusal != "" || r.once != want {
			t.Errorf("%s: %q, deletes anyway: %v", words, refusal, r.once)
		}
	}
}

func TestTheOneScriptOfARequest(t *testing.T) {
	for _, row := range []struct {
		name string
		r    Request
		want bool
	}{
		{"EVAL", Request{Args: wordsOf("eval text 1 k")}, true},
		{"EVALSHA of a known text", Request{Args: wordsOf("EVALSHA sum 1 k"), Scripts: wordsOf("text")}, true},
		{"EVALSHA of an unknown text", Request{Args: wordsOf("EVALSHA sum 1 k")}, false},
		{"another command", Request{Args: wordsOf("HSET text f v")}, false},
		{"a transaction", Request{Transaction: [][][]byte{wordsOf("EVAL text 1 k")}, Scripts: wordsOf("text")}, false},
	} {
		u := runnerOfNothing(t)
		if got := u.known(&row.r) != nil; got != row.want {
			t.Errorf("%s: known %v", row.name, got)
		}
	}
}
