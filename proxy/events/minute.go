package events

import "time"

// ShownSeconds is how far back the last minute goes. The second that has just begun is not
// shown yet.
const ShownSeconds = 60

// A minute keeps an S for each of the last seconds. Its methods need a lock of the caller.
type minute[S any] struct {
	seconds [ShownSeconds + 1]struct {
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
func (m *minute[S]) last(at time.Time) (list [ShownSeconds]S) {
	for i := range list {
		second := at.Unix() - ShownSeconds + int64(i)
		if slot := &m.seconds[second%int64(len(m.seconds))]; slot.at == second {
			list[i] = slot.of
		}
	}
	return list
}
