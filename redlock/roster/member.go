package roster

import (
	"slices"
	"strconv"
	"strings"
)

// A member is the server that is the master at a place, as markers record it. "1" was there
// when the set began. "3@10.0.0.9:6379/77c0de..." joined in epoch 3.
type member struct {
	epoch int64
	name  string // name given by a reload; empty: any server
	run   string // run id when it joined; empty: it was there from the beginning
}

func (m member) String() string {
	text := strconv.FormatInt(m.epoch, 10) + "@" + plainName(m.name)
	if m.run != "" {
		text += "/" + ShortRun(m.run)
	}
	return text
}

func readMember(text string) (m member) {
	epoch, who, _ := strings.Cut(text, "@")
	m.epoch, _ = strconv.ParseInt(epoch, 10, 64)
	m.name, m.run, _ = strings.Cut(who, "/")
	return m
}

// member returns the recorded member at a place, as far as this process knows.
func (r *Roster) member(master int) member { return readMember(r.joined[master]) }

func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == ',' || c == ' ' || c == '/' {
			return '_'
		}
		return c
	}, name)
}

// ShortRun returns the part of a run id that is recorded.
func ShortRun(run string) string { return run[:min(len(run), 12)] }

// together merges the members of two markers: for each place, the member that joined last. So
// no recorded join is forgotten, even if two processes made one each at the same moment.
func together(a, b []string) []string {
	if len(a) == 0 || slices.Equal(a, b) {
		return b
	}
	last := slices.Clone(a)
	for i, joined := range b {
		if before, now := readMember(last[i]).epoch, readMember(joined).epoch; now > before || now == before && joined > last[i] {
			last[i] = joined
		}
	}
	return last
}
