package run

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/stream"
)

// The questions are about one request. What a run made of a key is before>after, as in package effect: a string, a hash
// with a count ("holder:1"), a list ("[element"), a sorted set ("<member"), or nothing ("-"), perhaps with so many milliseconds
// left behind a slash. A request is words that say what is special of it, a colon, and its command or commands:
//
//	reads          it can only read
//	scripts=TEXT   EVALSHA runs this text; more than one have a | between them
//	MULTI          a transaction, with a | between its commands
//	deletes, once, tried, acquires, resp3    Request.Deletes, once, gaveUp, script.acquires, RESP3
func TestData(t *testing.T) { datatest.Run(t, ask) }

func ask(t *testing.T, question string) string {
	name, rest, _ := strings.Cut(question, " ")
	flags, rest, _ := strings.Cut(rest, ": ")
	r, words := requestOf(t, strings.Fields(flags), rest), strings.Fields(rest)
	u := runnerOfNothing(t)
	switch name {
	case "alike":
		return fmt.Sprintf("%+v", r.voting())
	case "script":
		return fmt.Sprintf("its text is known: %v, and learned: %v", u.known(r) != nil, r.scriptText() != nil)
	case "reach":
		refusal := u.tooFar(r)
		return fmt.Sprintf("%s, deletes anyway: %v", cmp.Or(strings.TrimSpace(refusal), "fine"), r.once)
	case "vote":
		x := effect.Result{Failed: isSaid(flags, "failed"), Blind: isSaid(flags, "blind"), Aborted: isSaid(flags, "aborted")}
		if rest != "" {
			x.Reply = []byte(unquoted(t, rest))
		}
		var cut error
		if isSaid(flags, "cut") {
			cut = io.ErrUnexpectedEOF
		}
		err := r.read(&x, cut, isSaid(flags, "reloaded"))
		return fmt.Sprintf("%v, %q", err, x.Reply)
	case "again":
		return strconv.FormatBool(r.mayGoAgain(verdictOf(words[0]), []quorum.Answer[effect.Result]{{State: stateOf(words[1])}}))
	case "outcome":
		a := answered(quorum.Answered, resultOf(t, words[1], words[2:]...))
		return outcomeText(r.outcome(ballot.Outcome{Verdict: verdictOf(words[0])}, []quorum.Answer[effect.Result]{a, a, a}))
	case "after":
		return afterTry(t, r, verdictOf(words[0]), stateOf(words[1]), words[2])
	case "told":
		return told(t, r, words)
	case "decided":
		a := answered(quorum.Answered, resultOf(t, ":1\r\n", words...))
		return verdictText(u.decideRun(r, []quorum.Answer[effect.Result]{a, a, a}, 5*time.Second))
	case "remembered":
		r.note(answered(quorum.Discounted, resultOf(t, "", words...)), ballot.Lost)
		return fmt.Sprintf("acquires: %v, goes next: %v", r.script.acquires.Load(), r.goesNext())
	case "grants":
		var answers []quorum.Answer[effect.Result]
		for _, word := range words {
			state, did, _ := strings.Cut(word, "=")
			answers = append(answers, answered(stateOf(state), resultOf(t, ":1\r\n", strings.Fields(did)...)))
		}
		var values []string
		for _, d := range possibleGrants(answers, wordsOf("lock")) {
			values = append(values, d.Value)
		}
		return cmp.Or(strings.Join(values, " "), "nothing")
	case "missed":
		return missed(t, words[0])
	case "late":
		return lateDeletion(t, words)
	case "on-record":
		b := &ballot.Ballot[effect.Result]{}
		for _, word := range words {
			a := answered(stateOf(word), resultOf(t, ":1\r\n", "->me/5000"))
			a.LongestTTL = time.Hour
			b.Answers = append(b.Answers, a)
		}
		return strconv.FormatBool(u.coverRun(b, r))
	case "behind":
		return behind(t, words)
	case "guard":
		return guarded(t, r, words)
	case "shown":
		x := resultOf(t, "", words...)
		x.Failed = isSaid(flags, "failed")
		var cut error
		if isSaid(flags, "cut") {
			cut = io.ErrUnexpectedEOF
		}
		_, err := shown(x, cut)
		return fmt.Sprint(err)
	case "unwatched":
		for key := range strings.SplitSeq(flags, ",") {
			r.Watches = append(r.Watches, &Watch{keys: wordsOf(key)})
		}
		return string(bytes.Join(r.unwatched(wordsOf(rest)), []byte(" ")))
	case "look":
		first := &Watch{keys: wordsOf("lock another"), masters: 1, images: map[int][]effect.Image{0: imagesOf(t, flags)}}
		then := &Watch{keys: first.keys, agreed: imagesOf(t, rest)}
		return goesOn(then.showsNoOther(first))
	case "met":
		return metBefore(t, flags, rest)
	}
	t.Fatalf("no such question: %s", question)
	return ""
}

func goesOn(is bool) string { return map[bool]string{true: "it goes on", false: "it is spared"}[is] }

func isSaid(flags, word string) bool { return slices.Contains(strings.Fields(flags), word) }

func unquoted(t *testing.T, text string) string {
	s, err := strconv.Unquote(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func wordsOf(command string) (words [][]byte) {
	for _, word := range strings.Fields(command) {
		words = append(words, []byte(word))
	}
	return words
}

// requestOf is a request with the key k0.
func requestOf(t *testing.T, flags []string, command string) *Request {
	r := &Request{Keys: wordsOf("k0"), Args: wordsOf(command), Effects: true, gaveUp: new(atomic.Bool), earlier: &earlier{deleted: map[int]bool{}}}
	for _, flag := range flags {
		switch flag {
		case "reads":
			r.ReadOnly = true
		case "deletes":
			r.Deletes = wordsOf("k0")
		case "once":
			r.once = true
		case "tried":
			r.gaveUp.Store(true)
		case "resp3":
			r.RESP3 = true
		case "script":
			r.script = &knownScript{}
		case "acquires":
			r.script = &knownScript{}
			r.script.acquires.Store(true)
		case "MULTI":
			r.Args = nil
			for part := range strings.SplitSeq(command, "|") {
				r.Transaction = append(r.Transaction, wordsOf(part))
			}
		default:
			if texts, ok := strings.CutPrefix(flag, "scripts="); ok {
				r.Scripts = wordsOf(strings.ReplaceAll(texts, "|", " "))
			}
		}
	}
	return r
}

func answered(state quorum.State, x effect.Result) quorum.Answer[effect.Result] {
	return quorum.Answer[effect.Result]{State: state, Value: x}
}

func verdictOf(word string) ballot.Verdict {
	return map[string]ballot.Verdict{"won": ballot.Won, "lost": ballot.Lost, "none": ballot.NoQuorum}[word]
}

func verdictText(v ballot.Verdict) string {
	return map[ballot.Verdict]string{ballot.Won: "won", ballot.Lost: "lost", ballot.NoQuorum: "none"}[v]
}

func stateOf(word string) quorum.State {
	return map[string]quorum.State{"answered": quorum.Answered, "amnesic": quorum.Discounted, "unable": quorum.Unable, "away": quorum.Unknown, "late": quorum.Awaited}[word]
}

func outcomeText(o ballot.Outcome) string {
	text := verdictText(o.Verdict)
	if o.Refused {
		text += ", refused"
	}
	for _, e := range o.Effects {
		name := map[ballot.Change]string{ballot.KeyCreated: "created", ballot.KeyReplaced: "replaced", ballot.KeyReentered: "reentered", ballot.KeyDeleted: "deleted"}[e.Change]
		text += ", " + name + " " + string(e.Key)
		if e.Value != nil {
			text += fmt.Sprintf(" %s %v", e.Value, e.TTL)
		}
	}
	for _, key := range o.Kept {
		text += ", kept " + string(key)
	}
	return text
}

// afterTry is the outcome of a lost ballot after a try in which a master deleted the lock. The ballot has refusals only,
// or refusals by masters that hold different things beside deletions.
func afterTry(t *testing.T, r *Request, verdict ballot.Verdict, state quorum.State, what string) string {
	r.note(answered(state, resultOf(t, ":1\r\n", "me>-")), verdict)
	did := []string{"me>me", "me>me", "me>me"}
	if what == "mixed" {
		did = []string{"me>-", "me>-", "me>me", "some>some", "->-"}
	}
	var answers []quorum.Answer[effect.Result]
	for _, word := range did {
		reply := ":0\r\n"
		if word == "me>-" {
			reply = ":1\r\n"
		}
		answers = append(answers, answered(quorum.Answered, resultOf(t, reply, word)))
	}
	return verdictText(r.outcome(ballot.Outcome{Verdict: ballot.Lost}, answers).Verdict)
}

// told is which deletions of a run that was not won are told, and which keys it deleted.
func told(t *testing.T, r *Request, did []string) string {
	var all []string
	r.Keys = wordsOf("k0 k1 k2 k3 k4")
	r.Deleted = func(key, value []byte) { all = append(all, string(key)+"="+string(value)) }
	r.note(answered(quorum.Answered, resultOf(t, ":1\r\n", did...)), ballot.NoQuorum)
	return fmt.Sprint(all, " of ", r.earlier.deletedKeys())
}

// missed is what a master is told that missed a won run.
func missed(t *testing.T, did string) string {
	now := time.Now()
	debts := missedRun(resultOf(t, ":1\r\n", did), wordsOf("lock"), now)
	if len(debts) == 0 {
		return "nothing"
	}
	switch d := debts[0]; {
	case d.Exact != nil:
		return "replace"
	case d.Script == stream.ReleaseScript && d.Life != nil:
		return "release for a time"
	case d.Script == stream.ReleaseScript:
		return "release"
	case d.Endless:
		return fmt.Sprintf("expire in %v, at last", d.Ttl.Sub(now))
	default:
		return fmt.Sprint("expire in ", d.Ttl.Sub(now))
	}
}

// lateDeletion tells whether the last of some deletions releases. Each is a key, a master, what it was, and "late" if it came
// when the ballot was over: 0@1=me or 0@1=me@late.
func lateDeletion(t *testing.T, words []string) string {
	d, b := &deletions{}, &ballot.Ballot[effect.Result]{Answers: make([]quorum.Answer[effect.Result], 5)}
	releases := false
	for _, word := range words {
		word, isLate := strings.CutSuffix(word, "@late")
		place, was, _ := strings.Cut(word, "=")
		key, master := int(place[0]-'0'), int(place[2]-'0')
		if b.Answers[master].State = quorum.Answered; isLate {
			b.Answers[master].State = quorum.Awaited
		}
		releases = d.byQuorum(b, key, master, imageOf(t, was), 50*time.Millisecond)
	}
	return fmt.Sprint("it releases: ", releases)
}

// behind tells which masters are asked behind two watches. Of both a quorum holds "me". A word is what a master showed
// of them, or ? if it did not.
func behind(t *testing.T, words []string) string {
	r := &Request{}
	for i := range 2 {
		w := &Watch{keys: wordsOf("k"), images: map[int][]effect.Image{}, agreed: imagesOf(t, "me")}
		for master, word := range words {
			state, x := quorum.Answered, effect.Result{}
			if shown := strings.Split(word, "+")[i]; shown == "?" {
				state = quorum.Unknown
			} else {
				x.After = imagesOf(t, shown)
			}
			w.note(master, answered(state, x))
		}
		r.Watches = append(r.Watches, w)
	}
	var asked []int
	for master := range words {
		if r.guard().Frames(master) != nil {
			asked = append(asked, master)
		}
	}
	return fmt.Sprint("asked: ", asked, ", shown by ", len(r.Watches[0].images))
}

// guarded is what follows from the replies to guards.
func guarded(t *testing.T, r *Request, words []string) string {
	var replies [][]byte
	for _, word := range words {
		replies = append(replies, []byte(strings.ReplaceAll(word, "_", " ")+"\r\n"))
	}
	passes, x, err := r.guard().Read(replies)
	if err != nil {
		return "it does not say"
	}
	return fmt.Sprintf("passes: %v, else %q", passes, x.Reply)
}

// metBefore tells whether a try goes on that follows a deletion, by what each master held when the first try came.
func metBefore(t *testing.T, met, now string) string {
	e := &earlier{}
	var first []quorum.Answer[effect.Result]
	for _, master := range strings.Fields(met) {
		var a quorum.Answer[effect.Result]
		if master != "away" {
			a.Value.Before = imagesOf(t, master)
		}
		first = append(first, a)
	}
	e.meet(first)
	e.meet(make([]quorum.Answer[effect.Result], 5)) // a later try does not count
	return goesOn(!e.mustSpare(0, imageOf(t, now)))
}

func imagesOf(t *testing.T, words string) (images []effect.Image) {
	for _, word := range strings.Fields(words) {
		images = append(images, imageOf(t, word))
	}
	return images
}

func imageOf(t *testing.T, word string) effect.Image {
	t.Helper()
	if word == "-" {
		return effect.Image{PTTL: effect.NoKey, Now: 1000}
	}
	text, left, expires := strings.Cut(word, "/")
	v := rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(text)}}
	if holder, count, is := strings.Cut(text, ":"); is {
		v = rdb.Value{Kind: rdb.Hash, Items: [][]byte{[]byte(holder), []byte(count)}}
	}
	switch text[0] {
	case '[':
		v.Kind = rdb.List
	case '<':
		v.Kind, v.Scores = rdb.SortedSet, []float64{1}
	}
	i := effect.Image{Dump: rdb.Dump(v), PTTL: effect.NoExpiry, Now: 1000}
	if expires {
		n, err := strconv.ParseInt(left, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		i.PTTL = n
	}
	return i
}

// resultOf is what a run made of keys. A reply of "none" is none.
func resultOf(t *testing.T, reply string, keys ...string) effect.Result {
	t.Helper()
	x := effect.Result{}
	if reply != "none" {
		x.Reply = []byte(strings.TrimSuffix(reply, "\r\n") + "\r\n")
	}
	for _, key := range keys {
		before, after, _ := strings.Cut(key, ">")
		x.Before, x.After = append(x.Before, imageOf(t, before)), append(x.After, imageOf(t, after))
	}
	return x
}

// A release whose own errors look like a master's is examined, because its reply alone does not
// show who speaks. So is one that cannot be read from its arguments.
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

// A script too long to be remembered counts as an acquire. No more than so many are remembered.
func TestWhichScriptsAreRemembered(t *testing.T) {
	var scripts knownScripts
	if long := scripts.of(make([]byte, maxKnownScript+1), nil); !long.acquires.Load() {
		t.Error("a script that is not remembered goes next")
	}
	if one := scripts.of([]byte("one"), nil); scripts.of([]byte("one"), nil) != one {
		t.Error("a script is not remembered")
	}
	for n := range 2 * maxKnownScripts {
		scripts.byText[strconv.Itoa(n)] = &knownScript{}
	}
	if scripts.of([]byte("one more"), nil); len(scripts.byText) > maxKnownScripts {
		t.Errorf("%d scripts are remembered", len(scripts.byText))
	}
}

func TestAWatchCountsWhatItHolds(t *testing.T) {
	w := &Watch{keys: [][]byte{make([]byte, 1000)}, images: map[int][]effect.Image{0: {{Dump: make([]byte, 3000)}}}}
	if size := w.Size(); size < 4000 || size > 5000 {
		t.Errorf("%d bytes", size)
	}
}
