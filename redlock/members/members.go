package members

import (
	"strconv"
	"strings"
)

// A Member is the server that is the master at a place, as markers record it. "1" was there
// when the set began. "3@10.0.0.9:6379/77c0de..." joined in epoch 3.
type Member struct {
	Epoch int64
	Name  string // name given by a reload; empty: any server
	Run   string // run id when it joined; empty: it was there from the beginning
}

func (m Member) String() string {
	text := strconv.FormatInt(m.Epoch, 10) + "@" + PlainName(m.Name)
	if m.Run != "" {
		text += "/" + ShortRun(m.Run)
	}
	return text
}

// Read is the reverse of String.
func Read(text string) (m Member) {
	epoch, who, _ := strings.Cut(text, "@")
	m.Epoch, _ = strconv.ParseInt(epoch, 10, 64)
	m.Name, m.Run, _ = strings.Cut(who, "/")
	return m
}

// PlainName returns a server's name without the signs that separate the parts of an entry.
func PlainName(name string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(",; /", c) {
			return '_'
		}
		return c
	}, name)
}

// ShortRun returns the part of a run id, or of a replication id, that is recorded.
func ShortRun(run string) string { return run[:min(len(run), 12)] }

// A Stage is how far a place's addition or removal has come. A place may be removed and added
// again: that is another round.
type Stage struct {
	Round int
	Step  Step
}

// A Step is one step of a place's way in and out, in order.
type Step uint8

const (
	Proposed Step = iota // its server shall be one more master
	Entering             // it is about to count
	Present              // it counts
	Retiring             // it counts, and shall be removed
	Exiting              // it is about to count no more
	Absent               // it does not count any more
)

const stepSigns = "+*=-~."

func (s Step) String() string {
	return [...]string{"proposed", "entering", "present", "retiring", "exiting", "absent"}[s]
}

// counts tells whether the place is one of the masters of which a quorum is needed.
func (s Stage) counts() bool { return s.Step >= Present && s.Step <= Exiting }

// less tells whether a stage comes before another.
func (s Stage) less(other Stage) bool {
	return s.Round < other.Round || s.Round == other.Round && s.Step < other.Step
}

// from the beginning on, a place is present
var first = Stage{0, Present}

// entry is the text of a place: its member, and its stage unless it was never added or removed.
func entry(who string, at Stage) string {
	if at == first {
		return who
	}
	return who + ";" + strconv.Itoa(at.Round) + stepSigns[at.Step:at.Step+1]
}

// cut is the reverse of entry.
func cut(entry string) (who string, at Stage) {
	who, text, _ := strings.Cut(entry, ";")
	at, _ = readStage(text)
	return who, at
}

// mostRounds bounds how often a place may be added.
const mostRounds = 1_000_000

// readStage reads the text of a stage. It returns false and the first stage if entry does not write it.
func readStage(text string) (Stage, bool) {
	if text == "" {
		return first, false
	}
	digits, sign := text[:len(text)-1], text[len(text)-1:]
	round, err := strconv.Atoi(digits)
	step := strings.Index(stepSigns, sign)
	if err != nil || step < 0 || round < 0 || round > mostRounds || strconv.Itoa(round) != digits || (Stage{round, Step(step)}) == first {
		return first, false
	}
	return Stage{round, Step(step)}, true
}

// isEntry tells whether a text is one that entry writes.
func isEntry(text string) bool {
	who, stage, staged := strings.Cut(text, ";")
	_, ok := readStage(stage)
	return who != "" && (!staged || ok)
}
