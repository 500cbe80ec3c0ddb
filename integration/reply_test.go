package integration

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// comparison is the rule by which the proxy's reply is held against plain
// Redis's. Everything is exact unless a step says why it cannot be.
type comparison string

const (
	// exact: the same bytes.
	exact comparison = "same bytes"
	// remaining: the same bytes, but integers that are not negative may be
	// apart by remainingTolerance: times to live, idle times, clocks.
	remaining comparison = "same bytes, times within tolerance"
	// unordered: the same elements in any order, at any depth: sets and
	// hashes are hashed with a seed of each process.
	unordered comparison = "same elements in any order"
	// shape: the same kinds of values in the same places: texts that hold
	// times, addresses of memory or random choices.
	shape comparison = "same shape"
	// declined: the proxy answers an error whatever plain Redis does: what it
	// documents it does not do on lock keys.
	declined comparison = "an error from the proxy"
)

// remainingTolerance is how far apart two readings of one clock may be, in
// milliseconds (or in whatever unit a reply has; it only gets laxer).
const remainingTolerance = 5000

func (c comparison) equal(plain, proxied []byte) bool {
	if c == exact || c == "" {
		return bytes.Equal(plain, proxied)
	}
	a, rest := parseValue(plain)
	b, other := parseValue(proxied)
	if len(rest)+len(other) > 0 {
		return false
	}
	switch c {
	case remaining:
		return a.same(b, func(x, y value) bool {
			return x.text == y.text || (x.kind == ':' && closeNumbers(x.text, y.text))
		})
	case unordered:
		a.sort()
		b.sort()
		return a.same(b, func(x, y value) bool { return x.text == y.text })
	case shape:
		return a.same(b, func(x, y value) bool { return true })
	case declined:
		return b.kind == '-'
	}
	return false
}

func closeNumbers(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x >= 0 && y >= 0 && max(x-y, y-x) <= remainingTolerance
}

// value is a reply taken apart.
type value struct {
	kind  byte
	text  string // for aggregates the length as it came
	items []value
}

// parseValue reads one value from raw, which holds it whole.
func parseValue(raw []byte) (value, []byte) {
	line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	v := value{kind: line[0], text: string(line[1:])}
	size, err := strconv.Atoi(v.text)
	switch v.kind {
	case '$', '=', '!':
		if size >= 0 && err == nil {
			v.text = string(rest[:size])
			rest = rest[size+2:]
		}
		return v, rest
	case '%', '|':
		size *= 2
	case '*', '~', '>':
	default:
		return v, rest
	}
	for range max(size, 0) {
		var item value
		item, rest = parseValue(rest)
		v.items = append(v.items, item)
	}
	return v, rest
}

func (v value) same(other value, leaf func(a, b value) bool) bool {
	if v.kind != other.kind || len(v.items) != len(other.items) {
		return false
	}
	if len(v.items) == 0 {
		return leaf(v, other)
	}
	for i := range v.items {
		if !v.items[i].same(other.items[i], leaf) {
			return false
		}
	}
	return true
}

// sort brings aggregates into an order of their contents. The pairs of a map
// may part company; what is compared is still the same bag of values.
func (v value) sort() {
	for i := range v.items {
		v.items[i].sort()
	}
	slices.SortFunc(v.items, func(a, b value) int { return strings.Compare(a.String(), b.String()) })
}

func (v value) String() string {
	var b strings.Builder
	b.WriteByte(v.kind)
	b.WriteString(v.text)
	for _, item := range v.items {
		b.WriteByte(' ')
		b.WriteString(item.String())
	}
	return b.String()
}
