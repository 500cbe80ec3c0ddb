package token

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
)

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

func TestVerdicts(t *testing.T) {
	valid := func(left time.Duration) bool { return left > time.Millisecond }
	for votes, want := range map[string]struct {
		verdict ballot.Verdict
		outrun  bool
	}{
		"raised raised raised ... ...":     {ballot.Won, false},
		"raised raised ... ... ...":        {ballot.Pending, false},
		"raised raised ending ... ...":     {ballot.Lost, false},
		"ending ending ending away away":   {ballot.Lost, false},
		"raised raised ending raised away": {ballot.Won, false},
		"outrun outrun outrun ... ...":     {ballot.Lost, true},
		"raised raised outrun ... ...":     {ballot.Pending, false},
		"raised raised outrun away away":   {ballot.Lost, true},
		"raised raised outrun ... away":    {ballot.Pending, false},
		"raised raised ending outrun away": {ballot.Lost, false},
		"raised raised ending amnesic ...": {ballot.Lost, false},
		"raised outrun outrun outrun ...":  {ballot.Lost, true},
		"other other other ... ...":        {ballot.Lost, false},
		"raised raised other other other":  {ballot.Lost, false},
		"raised raised other other away":   {ballot.NoQuorum, false},
		"raised raised other other ...":    {ballot.Pending, false},
		"outrun outrun away away away":     {ballot.NoQuorum, false},
		"type type type ... ...":           {ballot.Lost, false},
		"away away away raised raised":     {ballot.NoQuorum, false},
	} {
		var answers []quorum.Answer[answer]
		for word := range strings.FieldsSeq(votes) {
			answers = append(answers, vote(word))
		}
		if v := decide(answers, valid); v != want.verdict {
			t.Errorf("%s: %v, want %v", votes, v, want.verdict)
		}
		if got := outrun(answers); want.verdict == ballot.Lost && got != want.outrun {
			t.Errorf("%s: outrun is %v", votes, got)
		}
	}
}

// The next token is above each that a master told, whichever told last.
func TestTheLargestTokenIsLearned(t *testing.T) {
	var g Giver
	if next := g.next(); next != 0 {
		t.Errorf("without a known token it tries %d", next)
	}
	told := func(tokens ...int64) (answers []quorum.Answer[answer]) {
		for _, token := range tokens {
			answers = append(answers, quorum.Answer[answer]{State: quorum.Answered, Value: answer{before: token}})
		}
		return answers
	}
	g.learn(told(5, 9, 7))
	g.learn(told(3, 8))
	if next := g.next(); next != 10 {
		t.Errorf("after 9 it tries %d", next)
	}
}

func TestAnswersOfTheScript(t *testing.T) {
	list := func(n ...int64) []byte {
		reply := resp.AppendArray(nil, len(n))
		for _, n := range n {
			reply = append(append(append(reply, ':'), resp.Decimal(n)...), "\r\n"...)
		}
		return reply
	}
	for name, row := range map[string]struct {
		reply []byte
		want  answer
		err   error
	}{
		"raised":     {list(1, 500, 6), answer{held: true, raised: true, left: 500, before: 6}, nil},
		"not larger": {list(1, 500, 7), answer{held: true, left: 500, before: 7}, nil},
		"no TTL":     {list(1, -1, 6), answer{held: true, raised: true, left: endless, before: 6}, nil},
		"last ms":    {list(1, 0, 6), answer{held: true, raised: true, before: 6}, nil},
		"token 0":    {list(1, 500, 0), answer{held: true, raised: true, left: 500}, nil},
		"not held":   {list(0, 500, 6), answer{left: 500, before: 6}, nil},
		"no record":  {list(1, 500, -1), answer{held: true, left: 500, before: -1}, ballot.ErrUnable},
		"wrong type": {[]byte("-WRONGTYPE Operation against a key\r\n"), answer{noString: true}, nil},
	} {
		if got, err := parse(row.reply, 7); got != row.want || err != row.err {
			t.Errorf("%s: %+v %v, want %+v %v", name, got, err, row.want, row.err)
		}
	}
	for _, reply := range []string{"-NOPERM no\r\n", "$-1\r\n", "*2\r\n:1\r\n:1\r\n", "*3\r\n:1\r\n:1\r\n+x\r\n"} {
		if _, err := parse([]byte(reply), 7); err == nil {
			t.Errorf("%q is taken for an answer", reply)
		}
	}
}
