package corpus

import (
	"bytes"
	"strconv"

	"redlock-proxy/integration/rig"
)

// comparison is a rule for comparing the proxy's reply with plain Redis's. Replies must be
// equal byte for byte unless a step has another rule.
type comparison string

const (
	// Exact: the same bytes.
	Exact comparison = "same bytes"
	// Remaining: the same bytes, but integers that are not negative may differ by
	// RemainingTolerance. It is for times to live, idle times and clocks.
	Remaining comparison = "same bytes, times within tolerance"
	// unordered: the same elements in any order, at any depth. Each Redis process hashes
	// sets and hashes with its own seed.
	unordered comparison = "same elements in any order"
	// Shape: the same kinds of values in the same places. It is for texts with times,
	// memory addresses or random choices.
	Shape comparison = "same shape"
	// declined: the proxy answers with an error, whatever plain Redis does. It is for
	// commands that the proxy, as documented, does not run on lock keys.
	declined comparison = "an error from the proxy"
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
	case Remaining:
		return a.Same(b, func(x, y rig.Value) bool {
			return x.Text == y.Text || (x.Kind == ':' && closeNumbers(x.Text, y.Text))
		})
	case unordered:
		a.Sort()
		b.Sort()
		return a.Same(b, func(x, y rig.Value) bool { return x.Text == y.Text })
	case Shape:
		return a.Same(b, func(x, y rig.Value) bool { return true })
	case declined:
		return b.Kind == '-'
	}
	return false
}

func closeNumbers(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x >= 0 && y >= 0 && max(x-y, y-x) <= rig.RemainingTolerance
}
