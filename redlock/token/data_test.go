package token

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

// The questions are "decide" with a vote of each master, "parse" with the numbers or the error that the script answers, and
// "next" with the tokens that masters told, ballot by ballot.
func TestData(t *testing.T) { datatest.Run(t, ask) }

func ask(t *testing.T, question string) string {
	rule, rest, _ := strings.Cut(question, " ")
	words := strings.Fields(rest)
	switch rule {
	case "decide":
		var answers []quorum.Answer[answer]
		for _, word := range words {
			answers = append(answers, vote(word))
		}
		verdict := decide(answers, func(left time.Duration) bool { return left > time.Millisecond })
		name := map[ballot.Verdict]string{ballot.Pending: "pending", ballot.Won: "won", ballot.Lost: "lost", ballot.NoQuorum: "none"}[verdict]
		if verdict == ballot.Lost {
			return fmt.Sprint(name, ", outrun: ", outrun(answers))
		}
		return name
	case "parse":
		reply := []byte(rest + "\r\n")
		if !strings.ContainsAny(rest[:1], "-$") || strings.HasPrefix(rest, "-1") {
			reply = resp.AppendArray(nil, len(words))
			for _, word := range words {
				reply = append(reply, ":"+word+"\r\n"...)
			}
		}
		a, err := parse(reply, 7)
		wrong := "none"
		if err != nil {
			wrong = err.Error()
		}
		return fmt.Sprintf("%+v, error: %s", a, wrong)
	case "next":
		var g Giver
		for _, told := range words {
			var answers []quorum.Answer[answer]
			for word := range strings.SplitSeq(told, ",") {
				n, _ := strconv.ParseInt(word, 10, 64)
				answers = append(answers, quorum.Answer[answer]{State: quorum.Answered, Value: answer{before: n}})
			}
			g.learn(answers)
		}
		return strconv.FormatInt(g.next(), 10)
	}
	t.Fatalf("no such question: %s", question)
	return ""
}

// vote returns a master's answer by its word.
func vote(word string) (a quorum.Answer[answer]) {
	a.State = quorum.Answered
	switch word {
	case "raised":
		a.Value = answer{held: true, raised: true, left: 1000}
	case "ending":
		a.Value = answer{held: true, raised: true, left: 1}
	case "outrun":
		a.Value = answer{held: true, left: 1000}
	case "other":
	case "type":
		a.Value.noString = true
	case "amnesic":
		a = quorum.Answer[answer]{State: quorum.Discounted, Value: answer{held: true, raised: true, left: 1000}}
	case "away":
		a.State = quorum.Unknown
	case "...":
		a.State = quorum.Awaited
	default:
		panic(word)
	}
	return a
}
