package mend

import (
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// ReleaseAgain repeats a release that was won. One master timeout later it goes to the
// given masters, which had nothing to delete. The release may have come too early there:
// if another process took the lock, its question may still be on the way, and would make
// a copy that belongs to nobody. before is the count of Creations from before the
// release. If this process has asked for the key since, ReleaseAgain sends nothing,
// because the new lock may have an equal value.
func (m *Mender) ReleaseAgain(db int, d *stream.Debt, masters quorum.Set, before uint32) {
	if masters == 0 {
		return
	}
	time.AfterFunc(m.box.Masters.Limits().MasterTimeout, func() {
		defer m.Mend(db, d.Key) // for copies that come even later, or if nothing is sent
		if len(d.Value) < stream.ShortValue || m.box.Lanes.Creations(db, d.Key) != before {
			return
		}
		now := time.Now()
		list := m.box.Masters.List()
		for i := range list.Size() {
			if masters.Has(i) {
				list.At(i).Stream(db).Deliver(d, now, true)
			}
		}
	})
}
