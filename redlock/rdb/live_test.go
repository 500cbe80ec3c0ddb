package rdb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/livetest"
)

// Scripts in testdata/live store values on a real server, and compare their payloads:
//
//	compact, loose      the server chooses its smallest or its largest encodings
//	a: SADD k x | ...   commands that make the key k, whose payload is a; how it is read
//	others a: SADD k $every   so many others, each with one element changed, are not the same as a
//	same a b, differ a b ...
//
// A list is $every (elements at the limits of each encoding) or $integers. Behind it may stand ~ (shuffled), - (the other way round),
// :pairs (each two are a field and a value) or :scored (with scores that are times, other ones if it is shuffled).
func TestLive(t *testing.T) {
	datatest.Play(t, "testdata/live/*.txt", func(t *testing.T, told *datatest.Script) {
		m, dumps := livetest.Start(t), map[string][]byte{}
		for event := range told.Events {
			verb, rest, _ := strings.Cut(event, " ")
			names := strings.Fields(rest)
			switch {
			case verb == "compact":
				configure(m, compact)
			case verb == "loose":
				configure(m, loose)
			case verb == "same" || verb == "differ":
				told.Printf("%s", compared(dumps, names))
			case verb == "others":
				name, command, _ := strings.Cut(rest, ": ")
				differ := 0
				for i := range 12 {
					if !Same(dumps[name], made(m, command, i)) {
						differ++
					}
				}
				told.Printf("%d of 12 differ", differ)
			default:
				name := strings.TrimSuffix(verb, ":")
				dumps[name] = made(m, rest, -1)
				told.Printf("%s", readAs(dumps[name]))
			}
		}
	})
}

// compared tells which payloads are the same. If the server did not choose another encoding of a long list, that shows nothing.
func compared(dumps map[string][]byte, names []string) string {
	var same []string
	for i, name := range names {
		for _, other := range names[:i] {
			switch {
			case slices.Equal(dumps[name], dumps[other]) && len(dumps[name]) > 1000:
				same = append(same, name+" and "+other+" are encoded alike")
			case Same(dumps[name], dumps[other]):
				same = append(same, name+" and "+other+" are the same")
			}
		}
	}
	if same == nil {
		return "all differ"
	}
	return strings.Join(same, "\n")
}

// readAs is what is read of a payload. Its elements are written down only if there are few.
func readAs(dump []byte) string {
	v := Read(dump)
	text := fmt.Sprintf("%v of %d", v.Kind, len(v.Items))
	if _, isString := StringValue(dump); isString {
		text += ", and a string"
	}
	if v.Kind != Unknown && len(v.Items) > 0 && len(v.Items) < 10 {
		text += fmt.Sprintf(": %q", v.Items)
	}
	if len(v.Scores) > 0 && len(v.Scores) < 10 {
		text += fmt.Sprint(" ", v.Scores)
	}
	return text
}

// made is the payload of k after some commands. The element number changed, if there is one, is another.
func made(m *livetest.Server, commands string, changed int) []byte {
	m.Must("DEL", "k")
	for command := range strings.SplitSeq(commands, " | ") {
		var words []string
		for _, word := range strings.Fields(command) {
			words = append(words, listed(strings.Trim(word, `"`), changed)...)
		}
		m.Must(words...)
	}
	return m.Dump("k")
}

// listed is a list that a word stands for.
func listed(word string, changed int) []string {
	name, form, _ := strings.Cut(word, ":")
	kind := strings.TrimRight(name, "~-")
	var list []string
	switch kind {
	case "$every":
		list = elementsOfEverySize()
	case "$integers":
		random := rand.New(rand.NewPCG(3, 4))
		for range 300 {
			list = append(list, strconv.FormatInt(int64(random.Uint64())>>random.UintN(63), 10))
		}
		slices.Sort(list)
		list = slices.Compact(list)
	case "$three":
		list = []string{"one", "two", "three"}
	default:
		return []string{word}
	}
	if changed >= 0 && changed < len(list) {
		list[changed] += "x"
	}
	size, offset := 1, 0.0
	if form == "pairs" {
		size = 2
	}
	groups := slices.Collect(slices.Chunk(list, size))
	switch name[len(kind):] {
	case "~":
		offset = 1000
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	case "-":
		slices.Reverse(groups)
	}
	var words []string
	for i, g := range groups {
		if form == "scored" {
			words = append(words, strconv.FormatFloat(float64(i)*1.5+leastTime+offset, 'g', -1, 64))
		}
		if words = append(words, g...); len(g) < size {
			words = append(words, g[0])
		}
	}
	return words
}
