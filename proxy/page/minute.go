package page

import "time"

// shownSeconds is how far back the last minute goes. The second that has just begun is not
// shown yet.
const shownSeconds = 60

// A minute keeps an S for each of the last seconds. Its methods need a lock of the caller.
type minute[S any] struct {
	seconds [shownSeconds + 1]struct {
		at int64 // since 1970
		of S
	}
}

// now returns the S of the present second, which is zero when a second begins.
func (m *minute[S]) now(at time.Time) *S {
	second := at.Unix()
	slot := &m.seconds[second%int64(len(m.seconds))]
	if slot.at != second {
		slot.at = second
		slot.of = *new(S)
	}
	return &slot.of
}

// last returns the whole seconds before at, the oldest first.
func (m *minute[S]) last(at time.Time) (list [shownSeconds]S) {
	for i := range list {
		second := at.Unix() - shownSeconds + int64(i)
		if slot := &m.seconds[second%int64(len(m.seconds))]; slot.at == second {
			list[i] = slot.of
		}
	}
	return list
}

// votes are the answers of one master in a second.
type votes struct {
	count     int
	sum, most time.Duration
}

func (v *votes) add(after time.Duration) {
	v.count++
	v.sum += after
	v.most = max(v.most, after)
}

// decided counts the lock commands of a second that took a lock, did not, or could not be
// decided.
type decided struct{ granted, refused, undecided int64 }

func (d *decided) add(other decided) {
	d.granted += other.granted
	d.refused += other.refused
	d.undecided += other.undecided
}
