package roster

import (
	"slices"
	"strconv"
	"strings"
)

// Who the masters are is told, for each place, by the epoch in which the present
// one joined, with its name if a reload brought it in, and its run if it was
// promoted or joined as a newcomer: "1", "3@10.0.0.9:6379", "4@/5ac0f1...".

// joiner words that a server joined in an epoch. Name and run may be empty.
func joiner(epoch int64, name, run string) string {
	joined := strconv.FormatInt(epoch, 10) + "@" + plainName(name)
	if run != "" {
		joined += "/" + ShortRun(run)
	}
	return joined
}

func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == ',' || c == ' ' || c == '/' {
			return '_'
		}
		return c
	}, name)
}

func ShortRun(run string) string { return run[:min(len(run), 12)] }

// joinedIn is the epoch in which a member joined.
func joinedIn(joined string) int64 {
	epoch, _, _ := strings.Cut(joined, "@")
	n, _ := strconv.ParseInt(epoch, 10, 64)
	return n
}

// joinedName is by which name a member joined; empty: by none.
func joinedName(joined string) string {
	_, who, _ := strings.Cut(joined, "@")
	name, _, _ := strings.Cut(who, "/")
	return name
}

// joinedRun is in which run a member joined; empty: that is not told.
func joinedRun(joined string) string {
	_, run, _ := strings.Cut(joined, "/")
	return run
}

// joinedAs tells whether the member at a place can be the server of that name.
func joinedAs(joined, name string) bool {
	return joinedName(joined) == "" || joinedName(joined) == plainName(name)
}

// together is what two markers tell of who the masters are: at each place, who
// joined last. So no replacement is forgotten that is on record anywhere, also
// where two processes made one each at the same moment.
func together(a, b []string) []string {
	if len(a) == 0 || slices.Equal(a, b) {
		return b
	}
	last := slices.Clone(a)
	for i, joined := range b {
		if before, now := joinedIn(last[i]), joinedIn(joined); now > before || now == before && joined > last[i] {
			last[i] = joined
		}
	}
	return last
}
