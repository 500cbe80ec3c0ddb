package events

import "sync"

// mostDeparted is the number of clients that are known after they have left.
const mostDeparted = 8192

// A roll knows the clients that keys name by their ids: those that are connected, and the last
// that have left.
type roll struct {
	sync.Mutex
	byID map[int64]*Client
	line []*Client // of byID; the oldest first, but one that is still connected goes to the end
}

// add makes a client known, if it is not nil, and returns its id or 0.
func (r *roll) add(c *Client) int64 {
	if c == nil {
		return 0
	}
	if c.listed.Load() || c.listed.Swap(true) {
		return c.id
	}
	r.Lock()
	defer r.Unlock()
	r.byID[c.id], r.line = c, append(r.line, c)
	for looks := 2; looks > 0 && len(r.line) > mostDeparted; looks-- {
		oldest := r.line[0]
		if r.line = r.line[1:]; oldest.gone.Load() {
			delete(r.byID, oldest.id)
		} else {
			r.line = append(r.line, oldest)
		}
	}
	return c.id
}

// info describes a client by its id. Of one that left long ago only the id is known.
func (r *roll) info(id int64) ClientInfo {
	r.Lock()
	c := r.byID[id]
	r.Unlock()
	if c == nil && id != 0 {
		return ClientInfo{ID: id, Gone: true}
	}
	return c.Info()
}
