package master

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// A List is the masters at one moment, in the order of their numbers. It never changes. A
// ballot takes it once, so all its decisions use one number of masters.
type List struct{ masters []*Master }

// At returns the master with an index.
func (l *List) At(i int) *Master { return l.masters[i] }

// Size returns the number of masters, whether they may vote or not.
func (l *List) Size() int { return len(l.masters) }

// All returns all masters, whether they may vote or not.
func (l *List) All() quorum.Set { return 1<<l.Size() - 1 }

// Needed returns the quorum.
func (l *List) Needed() int { return quorum.Size(l.Size()) }

// Serving returns the masters that are asked at all now.
func (l *List) Serving(db int) (served quorum.Set) {
	now := time.Now()
	for i := range l.Size() {
		if l.At(i).database(db).Serves(now) {
			served |= 1 << i
		}
	}
	return served
}
