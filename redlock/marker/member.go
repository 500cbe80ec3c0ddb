package marker

import (
	"slices"
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

func ReadMember(text string) (m Member) {
	epoch, who, _ := strings.Cut(text, "@")
	m.Epoch, _ = strconv.ParseInt(epoch, 10, 64)
	m.Name, m.Run, _ = strings.Cut(who, "/")
	return m
}

func PlainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == ',' || c == ' ' || c == '/' {
			return '_'
		}
		return c
	}, name)
}

// ShortRun returns the part of a run id that is recorded.
func ShortRun(run string) string { return run[:min(len(run), 12)] }

// Together merges the members of two markers: for each place, the member that joined last. So
// no recorded join is forgotten, even if two processes made one each at the same moment.
func Together(a, b []string) []string {
	if len(a) == 0 || slices.Equal(a, b) {
		return b
	}
	last := slices.Clone(a)
	for i, joined := range b {
		if before, now := ReadMember(last[i]).Epoch, ReadMember(joined).Epoch; now > before || now == before && joined > last[i] {
			last[i] = joined
		}
	}
	return last
}
