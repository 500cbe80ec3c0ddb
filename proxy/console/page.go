package console

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

	"redlock-proxy/proxy/unruled"
)

const (
	// interval is the time between two events of /events.
	interval = time.Second
	// mostListeners bounds the connections of /events.
	mostListeners = 32
	// writePatience bounds the time in which a listener must take an event.
	writePatience = 10 * time.Second
)

// A Page serves the state of the proxy over HTTP.
type Page struct {
	console *Console
	list    func(ctx context.Context, glob string, n int) (h Held, ok bool) // the Console's Held
	unruled func() []unruled.Found
	started time.Time

	lives     context.Context // ends with Close
	end       context.CancelFunc
	held      heldLocks
	listeners chan struct{} // has an element for each one

	mu   sync.Mutex // guards what was sent last; it is held while that is made
	sent []byte
	at   time.Time
}

// NewPage makes a Page of what a Console knows.
func NewPage(c *Console) *Page {
	p := &Page{console: c, list: c.Held, unruled: c.UnruledLocks, started: time.Now(), listeners: make(chan struct{}, mostListeners)}
	p.lives, p.end = context.WithCancel(context.Background())
	p.held.turn = make(chan struct{}, 1)
	return p
}

// Close sends a last event to each listener, and ends its connection soon. It ends questions for locks.
func (p *Page) Close() { p.end() }

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
		panic(err) // it has no value that JSON cannot write
	}
	return text
}

// events answers /events: at once, then once a second, and at the end.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	full := false
	select {
	case p.listeners <- struct{}{}:
		defer func() { <-p.listeners }()
	default:
		full = true
	}
	if full || p.lives.Err() != nil {
		http.Error(w, "too many listeners, or the proxy is ending; /status.json answers once", http.StatusServiceUnavailable)
		return
	}
	conn := http.NewResponseController(w)
	// The server's deadlines are for requests that end.
	if conn.SetReadDeadline(time.Time{}) != nil {
		http.Error(w, "this connection cannot be listened on", http.StatusInternalServerError)
		return
	}
	header(w, "text/event-stream")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for last := false; ; {
		conn.SetWriteDeadline(time.Now().Add(writePatience))
		if _, err := w.Write([]byte("event: status\ndata: " + string(p.toSend()) + "\n\n")); err != nil || conn.Flush() != nil || last {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.lives.Done():
			last = true
		}
	}
}

// toSend is the state for listeners. It is made anew if it is old, so many listeners cost as much as two.
func (p *Page) toSend() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lives.Err() != nil || time.Since(p.at) >= interval/2 {
		p.sent, p.at = p.text(), time.Now()
	}
	return p.sent
}
