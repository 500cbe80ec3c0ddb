package effect

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// The questions are about votes, one of each master:
//
//	decide (1:->me/9000 1:->me/9001 0:you=you away ?) -> Pending
//
// A vote is a reply and what the run made of its keys, with commas between them:
// before>after, or x=x for what stayed. A key holds a string, a hash ("field:value+field:value"), or
// a sorted set ("<member:score"), a set ("{member+member") or a list ("[element+element"). It may have so many milliseconds left behind a slash, or it is
// absent: "-". A reply is an integer, "nil", or a code such as "ERR", or else a string. In place of a vote:
//
//	?            it may still come
//	unasked      its master was not asked
//	away         its master was asked, and may have done it
//	unable       its master answered that it cannot serve
//	amnesic:X    its master voted X, and may have forgotten locks
//
// "left" has votes that win, and is answered by the time for which a quorum keeps the key.
//
// "acquired" and "longest" have one vote, and are answered by whether it acquired a lock, and by the most
// milliseconds that it wrote.
//
// "unite" has a number of copies that must have a part, and the copies. Its answer says what the united copy
// has, and whether that is all.
//
// "wrote", "unchanged" and "deleted" have one key. A time behind an @ is the master's own when it looked. "holder" has a kind
// and the elements of a key.
//
// "parse" has what differs in a master's replies to an examination of the keys k and l and the commands GET k and GET l:
// multi, exec and the queued replies by number; what EXEC answers: the results c1 and c2, the times t1 and t2, the PTTLs
// p1 to p4 and the DUMPs d1 to d4; hello and bye with RESP3; check of a bounded one. _ is a space.
//
// "due" has the votes that won, or "lost", or "nothing" if the winners ran nothing, and what another master did. It is answered
// by what the key is to be there, or "as it is".
func TestData(t *testing.T) { datatest.Run(t, ask) }

func ask(t *testing.T, question string) string {
	rule, rest, _ := strings.Cut(question, " ")
	switch rule {
	case "decide", "decide-reading", "decide-members":
		r := map[string]Rule{"decide-reading": {Observes: true}, "decide-members": {Unordered: 1}}[rule]
		return decided(r, answersOf(t, rest))
	case "left":
		answers := answersOf(t, rest)
		return Rule{}.Left(answers, Rule{}.Winner(answers), 0).String()
	case "refusal":
		if reply := Refusal(answersOf(t, rest)); reply != nil {
			return strings.TrimSpace(string(reply))
		}
		return "none"
	case "acquired":
		return strconv.FormatBool(answerOf(t, rest).Value.Acquired())
	case "longest":
		return strconv.FormatInt(answerOf(t, rest).Value.LongestTTL(), 10)
	case "change":
		before, after := imagesOf(t, rest)
		return Compare(before, after).String()
	case "wrote":
		before, after := imagesOf(t, rest)
		return strconv.FormatBool(Compare(before, after).Wrote())
	case "unchanged":
		before, now := imagesOf(t, rest)
		return strconv.FormatBool(now.UnchangedSince(before))
	case "deleted":
		before, after := imagesOf(t, rest)
		x := Result{Before: []Image{before}, After: []Image{after}}
		return fmt.Sprint(x.Deleted(), " ", x.DeletedKey(0))
	case "holder":
		kind, items, _ := strings.Cut(rest, " ")
		v := rdb.Value{Kind: map[string]rdb.Kind{"hash": rdb.Hash, "list": rdb.List}[kind], Items: args(items)}
		if kind == "none" {
			return fmt.Sprintf("%q", Missing.Holder())
		}
		return fmt.Sprintf("%q", Image{Dump: rdb.Dump(v)}.Holder())
	case "parse":
		return parsed(strings.Fields(rest))
	case "unite":
		number, words, _ := strings.Cut(rest, ": ")
		needed, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		var copies []Image
		for word := range strings.FieldsSeq(words) {
			copies = append(copies, imageOf(t, word))
		}
		united, all, ok := Unite(needed, copies...)
		switch {
		case !ok:
			return "they differ"
		case all:
			return text(united) + ", which is all"
		}
		return text(united)
	case "due", "due-scrap":
		won, here, _ := strings.Cut(rest, ", here ")
		before, after := imagesOf(t, here)
		var winner *Result
		switch won {
		case "lost":
		case "nothing":
			winner = &Result{}
		default:
			b, a := imagesOf(t, won)
			winner = &Result{Before: []Image{b}, After: []Image{a}}
		}
		due := Due(winner, 0, before, after, rule == "due-scrap", 100*time.Millisecond)
		if Compare(after, due) == Kept || Compare(after, due) == StayedAbsent {
			return "as it is"
		}
		return text(due)
	}
	t.Fatalf("no such rule: %s", question)
	return ""
}

func decided(r Rule, answers []quorum.Answer[Result]) string {
	verdict, ttl := r.Decide(answers)
	name := map[quorum.Verdict]string{quorum.Pending: "Pending", quorum.Won: "Won", quorum.Lost: "Lost", quorum.NoQuorum: "NoQuorum"}[verdict]
	if verdict != quorum.Won {
		return name
	}
	winner := r.Winner(answers)
	for i := range winner.After {
		name += " " + text(winner.After[i])
	}
	if ttl >= 0 {
		name += fmt.Sprintf(" for %d ms", ttl.Milliseconds())
	}
	return name
}

func answersOf(t *testing.T, list string) (answers []quorum.Answer[Result]) {
	for _, word := range strings.Fields(strings.Trim(list, "()")) {
		answers = append(answers, answerOf(t, word))
	}
	return answers
}

func answerOf(t *testing.T, word string) quorum.Answer[Result] {
	if vote, amnesic := strings.CutPrefix(word, "amnesic:"); amnesic {
		a := answerOf(t, vote)
		a.State = quorum.Discounted
		return a
	}
	states := map[string]quorum.State{"?": quorum.Awaited, "unasked": quorum.Unasked, "away": quorum.Unknown, "unable": quorum.Unable}
	if state, missing := states[word]; missing {
		return quorum.Answer[Result]{State: state}
	}
	reply, keys, hasKeys := strings.Cut(word, ":")
	x := Result{Reply: replyOf(reply)}
	if hasKeys {
		for key := range strings.SplitSeq(keys, ",") {
			before, after := imagesOf(t, key)
			x.Before, x.After = append(x.Before, before), append(x.After, after)
		}
	}
	return quorum.Answer[Result]{State: quorum.Answered, Value: x}
}

func replyOf(word string) []byte {
	_, err := strconv.Atoi(word)
	switch {
	case word == "nil":
		return []byte("$-1\r\n")
	case err == nil:
		return []byte(":" + word + "\r\n")
	case strings.HasPrefix(word, "ERR"):
		return []byte("-" + strings.ReplaceAll(word, "_", " ") + "\r\n")
	case strings.HasPrefix(word, "["):
		return resp.AppendCommand(nil, strings.Split(strings.Trim(word, "[]"), "+")...)
	}
	return resp.AppendBulk(nil, word)
}

func imagesOf(t *testing.T, key string) (before, after Image) {
	t.Helper()
	first, second, changed := strings.Cut(key, ">")
	if !changed {
		var same bool
		if first, second, same = strings.Cut(key, "="); !same || first != second {
			t.Fatalf("%q says not what the key was and what it is", key)
		}
	}
	return imageOf(t, first), imageOf(t, second)
}

func imageOf(t *testing.T, word string) Image {
	t.Helper()
	word, clock, looked := strings.Cut(word, "@")
	now := int64(1000)
	if looked {
		now, _ = strconv.ParseInt(clock, 10, 64)
	}
	if word == "-" {
		return Image{PTTL: NoKey, Now: now}
	}
	value, left, expires := strings.Cut(word, "/")
	i := Image{Dump: rdb.Dump(valueOf(t, value)), PTTL: NoExpiry, Now: now}
	if expires {
		n, err := strconv.ParseInt(left, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		i.PTTL = n
	}
	return i
}

func valueOf(t *testing.T, word string) rdb.Value {
	t.Helper()
	if members, isSet := strings.CutPrefix(word, "{"); isSet {
		return rdb.Value{Kind: rdb.Set, Items: bytes.Split([]byte(members), []byte("+"))}
	}
	if elements, isList := strings.CutPrefix(word, "["); isList {
		return rdb.Value{Kind: rdb.List, Items: bytes.Split([]byte(elements), []byte("+"))}
	}
	if !strings.Contains(word, ":") {
		return rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(word)}}
	}
	pairs, isSortedSet := strings.CutPrefix(word, "<")
	v := rdb.Value{Kind: rdb.Hash}
	for pair := range strings.SplitSeq(pairs, "+") {
		name, number, _ := strings.Cut(pair, ":")
		v.Items = append(v.Items, []byte(name))
		if !isSortedSet {
			v.Items = append(v.Items, []byte(number))
			continue
		}
		score, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		v.Kind, v.Scores = rdb.SortedSet, append(v.Scores, score)
	}
	return v
}

// wordOf is how the questions spell a value.
func wordOf(v rdb.Value) string {
	var pairs []string
	switch v.Kind {
	case rdb.Hash:
		for pair := range slices.Chunk(v.Items, 2) {
			pairs = append(pairs, fmt.Sprintf("%s:%s", pair[0], pair[1]))
		}
		return strings.Join(pairs, "+")
	case rdb.SortedSet:
		for i, member := range v.Items {
			pairs = append(pairs, fmt.Sprintf("%s:%v", member, v.Scores[i]))
		}
		return "<" + strings.Join(pairs, "+")
	case rdb.Set:
		return "{" + string(bytes.Join(v.Items, []byte("+")))
	case rdb.List:
		return "[" + string(bytes.Join(v.Items, []byte("+")))
	}
	return string(v.Items[0])
}

// text is how the questions spell an image.
func text(i Image) string {
	if i.Absent() {
		return "-"
	}
	if i.PTTL >= 0 {
		return fmt.Sprintf("%s/%d", wordOf(rdb.Read(i.Dump)), i.PTTL)
	}
	return wordOf(rdb.Read(i.Dump))
}
