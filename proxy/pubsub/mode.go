package pubsub

import (
	"slices"
	"strings"

	"redlock-proxy/proxy/wire"
)

// A Mode is the options of CLIENT TRACKING ON.
type Mode struct {
	Broadcast, OptIn, OptOut, NoLoop bool
	Redirected                       bool
	Prefixes                         []string // of BCAST, from all CLIENT TRACKING commands so far
}

// everyKey is the prefixes of BCAST without a prefix.
var everyKey = []string{""}

// prefixes are those of the keys whose changes the client is told of although it has not read them.
func (m *Mode) prefixes() []string {
	switch {
	case m == nil || !m.Broadcast:
		return nil
	case len(m.Prefixes) == 0:
		return everyKey
	}
	return m.Prefixes
}

// maxTrackedPrefixes bounds the number of prefixes of one client. The listener compares
// each changed key and each new prefix with all of them.
const maxTrackedPrefixes = 1000

// ParseMode reads CLIENT TRACKING as Redis 7.0 does. args begin with the third word, ON
// or OFF. before is the mode until now, nil if tracking is off. It returns the new mode,
// nil for OFF, or the error reply. It does not check that the client of REDIRECT exists;
// the upstream does.
func ParseMode(args [][]byte, before *Mode) (next *Mode, refusal wire.Error) {
	next = &Mode{}
	for i := 1; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case more && wire.IsWord(args[i], "REDIRECT"):
			next.Redirected = true
			i++
		case wire.IsWord(args[i], "BCAST"):
			next.Broadcast = true
		case wire.IsWord(args[i], "OPTIN"):
			next.OptIn = true
		case wire.IsWord(args[i], "OPTOUT"):
			next.OptOut = true
		case wire.IsWord(args[i], "NOLOOP"):
			next.NoLoop = true
		case more && wire.IsWord(args[i], "PREFIX"):
			next.Prefixes = append(next.Prefixes, string(args[i+1]))
			i++
		default:
			return nil, wire.ErrSyntax
		}
	}
	switch {
	case wire.IsWord(args[0], "OFF"):
		return nil, ""
	case !wire.IsWord(args[0], "ON"):
		return nil, wire.ErrSyntax
	}
	if len(next.Prefixes) > maxTrackedPrefixes {
		return nil, wire.ErrTrackingPrefixes
	}
	if refusal = conflict(next, before); refusal != "" {
		return nil, refusal
	}
	if before != nil {
		next.Prefixes = slices.Concat(before.Prefixes, next.Prefixes)
	}
	if len(next.Prefixes) > maxTrackedPrefixes {
		return nil, wire.ErrTrackingPrefixes
	}
	return next, ""
}

// conflict returns the error for options that exclude each other, or that the mode
// before excludes. It returns "" if there is no conflict.
func conflict(m, before *Mode) wire.Error {
	switch {
	case len(m.Prefixes) > 0 && !m.Broadcast:
		return wire.ErrTrackingPrefix
	case before != nil && before.Broadcast != m.Broadcast:
		return wire.ErrTrackingBroadcast
	case m.Broadcast && (m.OptIn || m.OptOut):
		return wire.ErrTrackingOptions
	case m.OptIn && m.OptOut:
		return wire.ErrTrackingBoth
	case before != nil && (m.OptIn && before.OptOut || m.OptOut && before.OptIn):
		return wire.ErrTrackingSwitch
	}
	for i, prefix := range m.Prefixes {
		if before != nil {
			for _, other := range before.Prefixes {
				if overlap(prefix, other) {
					return errorPrefixes(prefix, other, "an existing prefix")
				}
			}
		}
		for _, other := range m.Prefixes[i+1:] {
			if overlap(prefix, other) {
				return errorPrefixes(prefix, other, "another provided prefix")
			}
		}
	}
	return ""
}

// overlap tells whether one prefix begins with the other. Equal prefixes overlap.
func overlap(a, b string) bool {
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

func errorPrefixes(prefix, other, of string) wire.Error {
	return wire.Error("-ERR Prefix '" + wire.OneLine([]byte(prefix)) + "' overlaps with " + of + " '" + wire.OneLine([]byte(other)) +
		"'. Prefixes for a single client must not overlap.\r\n")
}
