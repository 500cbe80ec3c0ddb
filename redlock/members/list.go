package members

import "slices"

// A List is the record of who the masters are, by place. Its texts are the entries of a marker.
type List []string

// New returns the record of a set that begins with so many masters, whatever servers they are.
func New(masters int) List { return slices.Repeat(List{"1"}, masters) }

// IsValid tells whether a list is one that markers can have.
func (l List) IsValid() bool {
	return !slices.ContainsFunc(l, func(text string) bool { return Read(text).String() != text })
}

// Who returns the text of the member at a place. It returns "" for a place that is not on record.
func (l List) Who(i int) string {
	if i >= len(l) {
		return ""
	}
	return l[i]
}

// Has tells whether a place is one of the masters.
func (l List) Has(i int) bool { return i < len(l) && !Read(l[i]).Removed }

// With returns the record with another member at a place. The place may be the one after the last.
func (l List) With(i int, m Member) List {
	m.Added = i >= len(l) || Read(l[i]).Added || Read(l[i]).Removed
	return l.WithText(i, m.String())
}

// WithText is With for the text of a member.
func (l List) WithText(i int, who string) List {
	l = slices.Clone(l)
	if i == len(l) {
		l = append(l, "")
	}
	l[i] = who
	return l
}

// Fits tells whether two records can be of one set. Places that only one of them has were added or removed.
func (l List) Fits(other List) bool {
	if len(l) > len(other) {
		l, other = other, l
	}
	return len(l) == 0 || !slices.ContainsFunc(other[len(l):], func(text string) bool { return !List{text}.IsResized() })
}

// IsResized tells whether the number of masters was ever changed.
func (l List) IsResized() bool {
	return slices.ContainsFunc(l, func(text string) bool { return Read(text).Added || Read(text).Removed })
}

// Counting returns how many masters there are. The places that count come first.
func (l List) Counting() (n int) {
	for i := range l {
		if l.Has(i) {
			n = i + 1
		}
	}
	return n
}

// Together merges two records. For each place it takes the latest member. So no recorded change is forgotten, even if
// two processes made one each at the same moment.
func (l List) Together(other List) List {
	if slices.Equal(l, other) {
		return other
	}
	last := slices.Clone(l)
	for i, who := range other {
		if i >= len(last) {
			last = append(last, who)
			continue
		}
		if before, now := Read(last[i]).Epoch, Read(who).Epoch; now > before || now == before && who > last[i] {
			last[i] = who
		}
	}
	return last
}
