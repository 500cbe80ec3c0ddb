package redlock

import (
	"fmt"
	"slices"
	"strings"
)

// runRequest is the request for a command, or for a transaction whose commands are separated by |. Options stand before it:
// effects, watched, deletes, told, and examined: its script is not recognised as a release.
func (s *stage) runRequest(p *process, r *request) RunRequest {
	q := RunRequest{DB: r.db, Keys: [][]byte{r.key}}
	words := r.words[1:]
	examined := false
options:
	for ; ; words = words[1:] {
		switch words[0] {
		case "effects":
			q.Effects = true
		case "watched":
			q.Watches = p.watch
		case "deletes":
			q.Deletes = q.Keys
		case "examined":
			examined = true
		case "told":
			q.Deleted = func(key, value []byte) {
				s.ended = append(s.ended, ending{"told", readable(fmt.Sprintf("it deleted %s with %s\n", key, value))})
			}
		default:
			break options
		}
	}
	var command [][]byte
	for _, word := range words {
		text, isScript := scriptTexts[word]
		switch {
		case word == "|":
			q.Transaction = append(q.Transaction, command)
			command = nil
			continue
		case word == "KEY":
			text = string(r.key)
		case isScript && string(command[0]) == "EVALSHA":
			q.Scripts = [][]byte{[]byte(text)}
			text = sha1Of([]byte(text))
		case isScript && examined:
			text += "\n--\\"
		case !isScript:
			text = meant(word)
		}
		command = append(command, []byte(text))
	}
	if r.words[0] == "transacts" {
		q.Transaction = append(q.Transaction, command)
		return q
	}
	q.Args = command
	return q
}

// scriptTexts are the texts of clients' scripts by their names.
var scriptTexts = map[string]string{"take-if-free": takeIfFree, "compare-and-delete": compareAndDelete, "delete-anyway": deleteAnyway, "extend-if-mine": extendIfMine,
	"reach-too-far": "return redis.call('del', 'redlock-proxy:master')"}

var changeNames = map[Change]string{KeyCreated: "created", KeyProlonged: "prolonged", KeyReplaced: "replaced", KeyDeleted: "deleted"}

// outcomeText is all of an outcome but its verdict.
func outcomeText(o Outcome) string {
	var text strings.Builder
	if o.Value != nil && o.Verdict != NoQuorum {
		fmt.Fprintf(&text, ": %s", named(string(o.Value)))
	}
	if o.Number != 0 {
		fmt.Fprintf(&text, ": %d", o.Number)
	}
	if o.Reply != nil {
		fmt.Fprintf(&text, ": %s", strings.ReplaceAll(strings.TrimSpace(string(o.Reply)), "\r\n", " "))
	}
	if o.Err != "" {
		fmt.Fprintf(&text, ": %s", o.Err)
	}
	if o.Lives != 0 {
		fmt.Fprintf(&text, ", lives %v", o.Lives)
	}
	for _, e := range slices.Concat(o.Effects, o.Attempted) {
		fmt.Fprintf(&text, ", %s %s", changeNames[e.Change], e.Key)
		if e.Value != nil {
			fmt.Fprintf(&text, " with %s", e.Value)
		}
		if e.TTL != 0 {
			fmt.Fprintf(&text, " for %v", e.TTL)
		}
	}
	if len(o.Kept) > 0 {
		fmt.Fprintf(&text, ", kept %s", o.Kept)
	}
	if o.Overtaken {
		text.WriteString(", overtaken")
	}
	if o.Verdict == NoQuorum {
		fmt.Fprintf(&text, ": %s", strings.TrimPrefix(o.NoQuorumError(), "QUORUMLOST "))
	}
	return text.String()
}
