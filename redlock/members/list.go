package members

import (
	"slices"
	"strings"
)

// A List is the record of who the masters are, by place. Its texts are the entries of a marker.
type List []string

// New returns the record of a set that begins with so many masters, whatever servers they are.
func New(masters int) List { return slices.Repeat(List{"1"}, masters) }

// IsValid tells whether a list is one that markers can have.
func (l List) IsValid() bool {
	return !slices.ContainsFunc(l, func(text string) bool { return !isEntry(text) })
}

// Who returns the text of the member at a place. It returns "" for a place that is not on record.
func (l List) Who(i int) string {
	if i >= len(l) {
		return ""
	}
	who, _ := cut(l[i])
	return who
}

// Stage returns the stage of a place. A place that is not on record is absent.
func (l List) Stage(i int) Stage {
	if i >= len(l) {
		return Stage{Step: Absent}
	}
	_, at := cut(l[i])
	return at
}

// Has tells whether a place is one of the masters, or shall be.
func (l List) Has(i int) bool { return l.Stage(i).Step != Absent }

// With returns the record with another member at a place, in the same stage.
func (l List) With(i int, who string) List { return l.put(i, who, l.Stage(i)) }

// at returns the record with another stage of a place.
func (l List) at(i int, stage Stage) List { return l.put(i, l.Who(i), stage) }

func (l List) put(i int, who string, at Stage) List {
	l = slices.Clone(l)
	if i == len(l) {
		l = append(l, "")
	}
	l[i] = entry(who, at)
	return l
}

// Fits tells whether two records can be of one set. Places that only one of them has were added, so
// they have stages.
func (l List) Fits(other List) bool {
	if len(l) > len(other) {
		l, other = other, l
	}
	return len(l) == 0 || !slices.ContainsFunc(other[len(l):], func(text string) bool { return !List{text}.IsStaged() })
}

// SameStages tells whether two records have the same stages.
func (l List) SameStages(other List) bool {
	return slices.EqualFunc(l, other, func(a, b string) bool {
		_, one := cut(a)
		_, another := cut(b)
		return one == another
	})
}

// IsStaged tells whether the number of masters was ever changed.
func (l List) IsStaged() bool {
	return slices.ContainsFunc(l, func(entry string) bool { return strings.Contains(entry, ";") })
}

// Counting returns how many masters there are. The places that count come first.
func (l List) Counting() (n int) {
	for i := range l {
		if l.Stage(i).counts() {
			n = i + 1
		}
	}
	return n
}

// Together merges two records. For each place it takes the member that joined last and the latest
// stage. So no recorded change is forgotten, even if two processes made one each at the same moment.
func (l List) Together(other List) List {
	if slices.Equal(l, other) {
		return other
	}
	last := slices.Clone(l)
	for i, text := range other {
		if i >= len(last) {
			last = append(last, text)
			continue
		}
		who, at := cut(last[i])
		otherWho, otherAt := cut(text)
		if before, now := Read(who).Epoch, Read(otherWho).Epoch; now > before || now == before && otherWho > who {
			who = otherWho
		}
		if at.less(otherAt) {
			at = otherAt
		}
		last[i] = entry(who, at)
	}
	return last
}
