package mend

import (
	"time"

	"redlock-proxy/redlock/stream"
)

// ReleaseAgain repeats a release that was won. One master timeout later it goes to a master
// that had nothing to delete. The release may have come too early there: if another process
// took the lock, its question may still be on the way, and would make a copy that belongs
// to nobody. before is the count of Creations from before the release. If this process has
// asked for the key since, ReleaseAgain sends nothing, because the new lock may have an
// equal value.
func (m *Mender) ReleaseAgain(db int, d *stream.Debt, master int, before uint32) {
	m.loop.After(m.box.Masters.Limits().MasterTimeout, func() {
		defer m.Mend(db, d.Key) // for copies that come even later, or if nothing is sent
		list := m.box.Masters.List()
		if len(d.Value) >= stream.ShortValue && m.box.Lanes.Creations(db, d.Key) == before && master < list.Size() {
			list.At(master).Stream(db).Deliver(d, time.Now(), true)
		}
	})
}
