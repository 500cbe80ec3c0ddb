package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock/inspect"
)

const (
	longestKey  = 256 // bytes that are shown of a key, or searched for
	heldPause   = 500 * time.Millisecond
	heldKept    = time.Second
	heldTimeout = 5 * time.Second
)

// A LockTable is what /locks.json answers. deploy/README.md has the meaning of the fields.
type LockTable struct {
	Time     Time   `json:"time"`
	Search   string `json:"search"`
	Complete bool   `json:"complete"`
	More     bool   `json:"more"`
	Locks    []Lock `json:"locks"`
}

// A Lock is a lock that is held.
type Lock struct {
	Key     string  `json:"key"`
	DB      int     `json:"db"`
	Type    string  `json:"type"`
	Digest  string  `json:"digest"`
	Holder  *Holder `json:"holder"` // null: not known here
	Until   Time    `json:"until"`  // null: it does not expire
	Masters int     `json:"masters"`
	Waiters int64   `json:"waiters"`
}

// A Holder is the client that took a lock through this proxy.
type Holder struct {
	Client    string `json:"client"`
	Name      string `json:"name"`
	Connected bool   `json:"connected"`
	Since     Time   `json:"since"`
}

// heldLocks bounds how often the masters are asked. A goroutine that has put an element into
// turn may ask, and owns the other fields.
type heldLocks struct {
	turn   chan struct{}
	search string
	text   []byte // the last answer, for search
	at     time.Time
}

// locks answers /locks.json.
func (p *Page) locks(w http.ResponseWriter, r *http.Request) {
	search := r.FormValue("search")
	if len(search) > longestKey {
		http.Error(w, "search must have at most 256 bytes", http.StatusBadRequest)
		return
	}
	text, ok := p.lockTable(r.Context(), search)
	if !ok {
		http.Error(w, "others list locks now; ask again", http.StatusServiceUnavailable)
		return
	}
	header(w, "application/json")
	w.Write(append(slices.Clip(text), '\n'))
}

// lockTable returns a LockTable as JSON, which may be a second old. ok is false if the turn
// of this question did not come in time.
func (p *Page) lockTable(ctx context.Context, search string) (text []byte, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, heldTimeout)
	defer cancel()
	defer context.AfterFunc(p.lives, cancel)()
	h := &p.held
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, false
	}
	if h.text != nil && h.search == search && time.Since(h.at) < heldKept {
		return h.text, true
	}
	select {
	case <-time.After(time.Until(h.at.Add(heldPause))):
	case <-ctx.Done():
		return nil, false
	}
	held, ok := p.list(ctx, globOf(search), usualLocks)
	if !ok {
		return nil, false
	}
	text, err := json.Marshal(lockTableOf(held, search, time.Now()))
	if err != nil {
		panic(err) // a LockTable has no field that JSON cannot write
	}
	h.search, h.text, h.at = search, text, time.Now()
	return text, true
}

var escapes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// globOf returns the glob of keys that contain a text; empty for all.
func globOf(search string) string {
	if search == "" {
		return ""
	}
	return "*" + escapes.Replace(search) + "*"
}

func lockTableOf(held Held, search string, now time.Time) LockTable {
	table := LockTable{Time: Time(now), Search: search, Complete: held.Complete, More: held.More, Locks: []Lock{}}
	for _, l := range held.Locks {
		shown := Lock{
			Key: l.Key[:min(len(l.Key), longestKey)], DB: l.DB, Type: l.Holding.Type, Digest: l.Holding.Digest,
			Masters: l.Holding.Holders, Waiters: l.Waiters,
		}
		if l.Holding.TTL != inspect.NoTTL {
			shown.Until = Time(now.Add(l.Holding.TTL))
		}
		if l.Known {
			client := l.Holder.Client
			shown.Holder = &Holder{Client: client.Address, Name: client.Name, Connected: !client.Gone, Since: Time(l.Holder.Since)}
		}
		table.Locks = append(table.Locks, shown)
	}
	slices.SortFunc(table.Locks, func(a, b Lock) int { return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key)) })
	return table
}
