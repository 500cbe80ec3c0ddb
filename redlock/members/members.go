package members

import (
	"strconv"
	"strings"
)

// A Member is the server that is the master at a place, as markers record it. "1" was there
// when the set began. "3@10.0.0.9:6379/77c0de..." joined in epoch 3, in the place of another one. "3+10.0.0.9:6379/77c0de..."
// joined in a place that was new or had been removed. "4-" says that the place was removed in epoch 4.
type Member struct {
	Epoch          int64
	Name           string // name given by a reload; empty: any server
	Run            string // run id when it joined; empty: it was there from the beginning
	Added, Removed bool
}

func (m Member) String() string {
	text := strconv.FormatInt(m.Epoch, 10)
	switch {
	case m.Removed:
		return text + "-"
	case m.Added:
		text += "+"
	case m.Name == "" && m.Run == "":
		return text
	default:
		text += "@"
	}
	text += PlainName(m.Name)
	if m.Run != "" {
		text += "/" + ShortRun(m.Run)
	}
	return text
}

// Read is the reverse of String.
func Read(text string) (m Member) {
	at := strings.IndexAny(text, "@+-")
	if at < 0 {
		m.Epoch, _ = strconv.ParseInt(text, 10, 64)
		return m
	}
	m.Epoch, _ = strconv.ParseInt(text[:at], 10, 64)
	m.Added, m.Removed = text[at] == '+', text[at] == '-'
	m.Name, m.Run, _ = strings.Cut(text[at+1:], "/")
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
