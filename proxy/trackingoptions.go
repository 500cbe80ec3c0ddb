package proxy

import (
	"slices"
	"strings"

	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/wire"
)

// maxTrackedPrefixes bounds what each changed key, and each other prefix, is
// compared with.
const maxTrackedPrefixes = 1000

// parseTracking reads CLIENT TRACKING from its third word on, as Redis 7.0
// does: what is in force afterwards, nil for off, or the error reply. That the
// client to redirect to exists is for the upstream to say.
func parseTracking(args [][]byte, before *pubsub.Mode) (next *pubsub.Mode, refusal string) {
	next = &pubsub.Mode{}
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
		next.Prefixes = appendMissingTexts(slices.Clone(before.Prefixes), next.Prefixes)
	}
	if len(next.Prefixes) > maxTrackedPrefixes {
		return nil, wire.ErrTrackingPrefixes
	}
	return next, ""
}

// conflict is the error for options that do not go together, or not with what
// is in force.
func conflict(m, before *pubsub.Mode) string {
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

// overlap: one begins with the other. The same prefix twice is none, as with
// Redis, except in one command.
func overlap(a, b string) bool {
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

func errorPrefixes(prefix, other, of string) string {
	return "-ERR Prefix '" + wire.OneLine([]byte(prefix)) + "' overlaps with " + of + " '" + wire.OneLine([]byte(other)) +
		"'. Prefixes for a single client must not overlap.\r\n"
}

func appendMissingTexts(list, more []string) []string {
	for _, text := range more {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}
