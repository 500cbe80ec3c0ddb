package corpus

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/rig"
)

// comparison is a rule for comparing the proxy's reply with plain Redis's. Replies must be
// equal byte for byte unless a step has another rule.
type comparison string

const (
	// Exact: the same bytes.
	Exact comparison = "same bytes"
	// remaining: the same bytes, but times to live and clocks in milliseconds may differ by
	// RemainingTolerance. Integers below it are no such times, so that 1 is not 0.
	remaining comparison = "same bytes, milliseconds within tolerance"
	// remainingSeconds is the same for times in seconds.
	remainingSeconds comparison = "same bytes, seconds within tolerance"
	// idle: the same bytes, but how long a consumer or an entry of a stream has been idle,
	// and since when, may differ by RemainingTolerance.
	idle comparison = "same bytes, idle times within tolerance"
	// idleSeconds is for a reply that is one idle time in seconds.
	idleSeconds comparison = "same bytes, idle time within tolerance"
	// Hello: the same bytes, but each server counts its own clients, and the proxy has none of
	// the modules that come with Redis 8.
	Hello comparison = "same bytes, but for the client's id and modules"
	// unordered: the same elements in any order, at any depth. Each Redis process hashes
	// sets and hashes with its own seed.
	unordered comparison = "same elements in any order"
	// Shape: the same kinds of values in the same places. It is for texts with times,
	// memory addresses or random choices.
	Shape comparison = "same shape"
	// declined: the proxy says that it does not run this command on lock keys, whatever plain
	// Redis does. Without a lock key the replies are the same bytes.
	declined comparison = "the proxy's refusal"
)

func (c comparison) Equal(plain, proxied []byte) bool {
	if c == Exact || c == "" {
		return bytes.Equal(plain, proxied)
	}
	a, rest := rig.ParseValue(plain)
	b, other := rig.ParseValue(proxied)
	if len(rest)+len(other) > 0 {
		return false
	}
	switch c {
	case remaining:
		return a.Same(b, func(x, y rig.Value) bool { return sameText(x, y) || near(x, y, toleratedMS, toleratedMS) })
	case remainingSeconds:
		return a.Same(b, func(x, y rig.Value) bool { return sameText(x, y) || near(x, y, toleratedSeconds, toleratedSeconds) })
	case idle:
		return sameBut(a, b, isIdleTime, func(x, y rig.Value) bool { return near(x, y, 0, toleratedMS) })
	case idleSeconds:
		return sameText(a, b) || near(a, b, 0, toleratedSeconds)
	case Hello:
		ofServer := func(within rig.Value, at int) bool {
			return at%2 == 1 && (within.Items[at-1].Text == "id" || within.Items[at-1].Text == "modules")
		}
		return sameBut(a, b, ofServer, func(x, y rig.Value) bool {
			return near(x, y, 1, math.MaxInt64) || x.Kind == '*' && y.Kind == '*' && len(y.Items) == 0
		})
	case unordered:
		a.Sort()
		b.Sort()
		return a.Same(b, sameText)
	case Shape:
		return a.Same(b, func(x, y rig.Value) bool { return true })
	case declined:
		return sameText(a, b) || b.Kind == '-' && strings.HasSuffix(b.Text, " on lock keys is not supported by this proxy")
	}
	return false
}

const (
	toleratedMS      = int64(rig.RemainingTolerance / time.Millisecond)
	toleratedSeconds = int64(rig.RemainingTolerance / time.Second)
)

func sameText(a, b rig.Value) bool { return a.Kind == b.Kind && a.Text == b.Text }

// near tells whether two integers are not below least and differ by at most tolerance.
func near(a, b rig.Value, least, tolerance int64) bool {
	x, errX := strconv.ParseInt(a.Text, 10, 64)
	y, errY := strconv.ParseInt(b.Text, 10, 64)
	return a.Kind == ':' && b.Kind == ':' && errX == nil && errY == nil && min(x, y) >= least && max(x-y, y-x) <= tolerance
}

// sameBut tells whether two replies are the same, except for the elements that differs
// names. These must be alike.
func sameBut(a, b rig.Value, differs func(within rig.Value, at int) bool, alike func(x, y rig.Value) bool) bool {
	if a.Kind != b.Kind || len(a.Items) != len(b.Items) {
		return false
	}
	if len(a.Items) == 0 {
		return sameText(a, b)
	}
	for i := range a.Items {
		if differs(a, i) && alike(a.Items[i], b.Items[i]) {
			continue
		}
		if !sameBut(a.Items[i], b.Items[i], differs, alike) {
			return false
		}
	}
	return true
}

var entryID = regexp.MustCompile(`^\d+-\d+$`)

// isIdleTime tells whether an element is a time that has passed since an event, or its
// moment. Such an element has its name in front. In a list of pending entries it is in
// front of the number of deliveries, which is the last element.
func isIdleTime(within rig.Value, at int) bool {
	if at == 0 || within.Items[at].Kind != ':' {
		return false
	}
	switch within.Items[at-1].Text {
	case "idle", "inactive", "seen-time", "active-time":
		return true
	}
	return at == len(within.Items)-2 && entryID.MatchString(within.Items[0].Text)
}
