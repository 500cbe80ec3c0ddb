package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock/scan"
)

const (
	longestKey  = 256 // bytes that are shown of a key, or searched for
	heldPause   = 500 * time.Millisecond
	heldKept    = time.Second
	heldTimeout = 5 * time.Second
)

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

// lockTable returns the locks as JSON, which may be a second old. ok is false if the turn
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
		panic(err) // it has no value that JSON cannot write
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

// lockTableOf shows the locks that are held. deploy/REFERENCE.md has the meaning of the fields.
func lockTableOf(held Held, search string, now time.Time) pairs {
	slices.SortFunc(held.Locks, func(a, b HeldLock) int { return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key)) })
	return pairs{"time", Time(now), "search", search, "complete", held.Complete, "more", held.More, "locks", objects(held.Locks, func(l HeldLock) pairs {
		var holder any // not known here
		if l.Known {
			client := l.Holder.Client
			holder = pairs{"client", client.Address, "name", client.Name, "connected", !client.Gone, "since", Time(l.Holder.Since)}
		}
		var until Time // it does not expire
		if l.Holding.TTL != scan.NoTTL {
			until = Time(now.Add(l.Holding.TTL))
		}
		return pairs{
			"key", l.Key[:min(len(l.Key), longestKey)], "db", l.DB, "type", l.Holding.Type, "digest", l.Holding.Digest,
			"holder", holder, "until", until, "masters", l.Holding.Holders, "waiters", l.Waiters,
		}
	})}
}
