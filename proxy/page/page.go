package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/journal"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock"
)

const (
	// interval is the longest time between two events of /events.
	interval = time.Second
	// shortestInterval bounds how often changes are sent.
	shortestInterval = 100 * time.Millisecond
	// mostListeners bounds the connections of /events.
	mostListeners = 32
	// writePatience bounds the time in which a listener must take an event.
	writePatience = 10 * time.Second
)

// A Source is what the Page asks for. All goroutines may call its functions. Only Held
// may block.
type Source struct {
	Version  string
	Masters  func() redlock.Status
	Draining func() bool
	Clients  func() int      // number of connected clients
	Notes    func() []string // lines for operators
	// Upstream says why the upstream cannot be used. It is empty if it can, or if there is none.
	Upstream func() (problem string)
	// Hottest returns the most refused keys, n at most. Known returns the clients, in a slice
	// that the Page may change.
	Hottest func(n int) []journal.HotKey
	Known   func() []journal.ClientInfo
	// Unruled returns the patterns of keys that look like locks and match no rule.
	Unruled func() []unruled.Found
	// Held returns locks whose keys match a glob, n at most. It asks the masters, until ctx
	// ends. ok is false if it could not ask.
	Held func(ctx context.Context, glob string, n int) (h console.Held, ok bool)
}

// A Page serves the state of the proxy over HTTP.
type Page struct {
	source   Source
	recorder *Recorder
	started  time.Time

	lives context.Context // ends when Run has ended
	end   context.CancelFunc
	held  heldLocks

	mu        sync.Mutex
	listeners map[chan []byte]struct{}
}

// New makes a Page. Its /events send nothing until Run runs.
func New(source Source, recorder *Recorder) *Page {
	p := &Page{source: source, recorder: recorder, started: time.Now(), listeners: map[chan []byte]struct{}{}}
	p.lives, p.end = context.WithCancel(context.Background())
	p.held.turn = make(chan struct{}, 1)
	return p
}

// Register adds the Page's addresses.
func (p *Page) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		header(w, "application/json")
		w.Write(append(p.text(), '\n'))
	})
	mux.HandleFunc("GET /events", p.events)
	mux.HandleFunc("GET /locks.json", p.locks)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		header(w, "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Write(html)
	})
}

//go:embed page.html
var html []byte

// policy lets the page run its own script and style, and ask nobody but the proxy.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"script-src " + hashOf("script") + "; style-src " + hashOf("style")

// hashOf returns the hash of the text in the page's only element with a tag. It has the form
// that a policy needs.
func hashOf(tag string) string {
	_, rest, _ := bytes.Cut(html, []byte("<"+tag+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"+tag+">"))
	hash := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

func header(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

func (p *Page) text() []byte {
	text, err := json.Marshal(p.status())
	if err != nil {
		panic(err) // a Status has no field that JSON cannot write
	}
	return text
}

// Run sends events to the listeners until ctx ends: once a second and on each change. Then
// it sends the last one, and every listener's connection is closed.
func (p *Page) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.send()
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-p.recorder.changed:
			select { // what else changes now goes with it
			case <-ctx.Done():
			case <-time.After(shortestInterval):
			}
		}
	}
	p.send()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	for listener := range p.listeners {
		close(listener)
	}
	clear(p.listeners)
}

// send gives all listeners the present state. A listener that has not taken the state before
// gets only this one.
func (p *Page) send() {
	p.mu.Lock()
	nobody := len(p.listeners) == 0
	p.mu.Unlock()
	if nobody {
		return
	}
	text := p.text()
	p.mu.Lock()
	defer p.mu.Unlock()
	for listener := range p.listeners {
		select {
		case <-listener:
		default:
		}
		listener <- text // has room: only send fills it
	}
}

// listen adds a listener. ok is false if there are too many, or if Run has ended.
func (p *Page) listen() (listener chan []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lives.Err() != nil || len(p.listeners) >= mostListeners {
		return nil, false
	}
	listener = make(chan []byte, 1)
	p.listeners[listener] = struct{}{}
	return listener, true
}

func (p *Page) leave(listener chan []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listeners, listener)
}

// events answers /events. The first event comes at once.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	listener, ok := p.listen()
	if !ok {
		http.Error(w, "too many listeners, or the proxy is ending; /status.json answers once", http.StatusServiceUnavailable)
		return
	}
	defer p.leave(listener)
	conn := http.NewResponseController(w)
	// The server's deadlines are for requests that end.
	if conn.SetReadDeadline(time.Time{}) != nil {
		http.Error(w, "this connection cannot be listened on", http.StatusInternalServerError)
		return
	}
	header(w, "text/event-stream")
	text, more := p.text(), true
	for more {
		conn.SetWriteDeadline(time.Now().Add(writePatience))
		if _, err := w.Write([]byte("event: status\ndata: " + string(text) + "\n\n")); err != nil || conn.Flush() != nil {
			return
		}
		select {
		case text, more = <-listener:
		case <-r.Context().Done():
			return
		}
	}
}
