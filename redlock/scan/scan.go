package scan

import (
	"context"

	"redlock-proxy/redlock/quorum"
)

// A Source is what Walk asks. Masters is the one in service.
type Source interface {
	Size() int // the number of masters
	Votes(master int) bool
	// Server returns which run of the server answers, and the databases that have keys.
	Server(ctx context.Context, master int) (run string, dbs []int, err error)
	Page(ctx context.Context, master, db int, cursor []byte) (next []byte, keys [][]byte, err error)
}

// Walk visits the keys of so many masters that each quorum has one of them. It ends early
// if visit returns false, or with ctx. all is true if it visited every key that a quorum
// held all the time. A key may come several times.
func Walk(ctx context.Context, s Source, visit func(db int, keys [][]byte) (more bool)) (all bool) {
	w := walk{Source: s, ctx: ctx, visit: visit}
	masters := s.Size()
	need := quorum.Intersecting(masters)
	for i := 0; i < masters && w.scanned.Len() < need && !w.isOver(); i++ {
		if s.Votes(i) && w.scanMaster(i) {
			w.scanned |= 1 << i
		}
	}
	return w.scanned.Len() == need && !w.isOver() && s.Size() == masters
}

// A walk is one Walk.
type walk struct {
	Source
	ctx     context.Context
	visit   func(db int, keys [][]byte) (more bool)
	scanned quorum.Set
	ended   bool // visit has returned false
}

func (w *walk) isOver() bool { return w.ended || w.ctx.Err() != nil }

// scanMaster visits the keys of one master. It returns false if it did not come to the end, or
// if the server was restarted meanwhile: a cursor means nothing to another run.
func (w *walk) scanMaster(i int) bool {
	began, dbs, err := w.Server(w.ctx, i)
	if err != nil {
		return false
	}
	for _, db := range dbs {
		if !w.scanDatabase(i, db) {
			return false
		}
	}
	ended, _, err := w.Server(w.ctx, i)
	return err == nil && ended == began
}

func (w *walk) scanDatabase(i, db int) bool {
	for cursor := []byte("0"); ; {
		next, keys, err := w.Page(w.ctx, i, db, cursor)
		if err != nil {
			return false
		}
		w.ended = !w.visit(db, keys)
		if w.isOver() {
			return false
		}
		if cursor = next; string(cursor) == "0" {
			return true
		}
	}
}
