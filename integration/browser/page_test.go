package browser

import (
	"flag"
	"fmt"
	"image/png"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

var screenshot = flag.String("screenshot", "", "write the picture of TestPage to `FILE`")

// holderToken is the value of locks, and digest what may be shown of it.
const (
	holderToken = "a-token-that-nobody-may-see"
	digest      = "bfaffe16"
)

// heldFor is longer than the test runs.
const heldFor = 15 * time.Minute

// mostPictureBytes bounds the picture in the README.
const mostPictureBytes = 200_000

// TestPage: with five masters, of which one is killed and one quarantined, the page says so
// in words. It follows the state by itself: when a third master dies, and when the proxy
// ends. It runs without an error, and nothing in it violates its own policy.
func TestPage(t *testing.T) {
	c := rig.StartCluster(t, rig.Options{RestartDelay: 10 * time.Minute, MaxQuarantine: 20 * time.Minute})
	killed, flushed := c.Masters[3], c.Masters[4]
	client := redis.NewClient(&redis.Options{Addr: c.Proxy.Addr(), ClientName: "order-service", MaxRetries: -1, ReadTimeout: rig.Patience})
	defer client.Close()
	for i := range 12 {
		key := fmt.Sprintf("lock:order:%d", 4710+i)
		rig.MustAcquire(t, client, key, holderToken, heldFor)
		for range i % 4 {
			if ok, err := rig.Acquire(t.Context(), client, key, "another-token-of-somebody", rig.LongTTL); ok || err != nil {
				t.Fatalf("a held lock: %v %v", ok, err)
			}
		}
	}
	killed.Kill()
	if err := flushed.Direct.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	tab := startChromium(t)
	tab.resize(t, 1200, 1120)
	tab.colours(t, "light")
	tab.call(t, "Page.navigate", map[string]any{"url": fmt.Sprintf("http://127.0.0.1:%d/", c.Proxy.Admin)}, nil)

	tab.reads(t, "#health", "Locks work, at risk", "One more failure stops all locks", "3/5 vote, 3 needed")
	tab.reads(t, "#masters li:nth-child(1)", c.Masters[0].Addr(), "voting", "votes in", " ms", "clock", "±")
	tab.reads(t, "#masters li:nth-child(4)", killed.Addr(), "unreachable", "it is not connected: connection refused: deploy/INCIDENTS.md#unreachable")
	tab.reads(t, "#masters li:nth-child(5)", flushed.Addr(), "quarantined", "until ", "it may have forgotten locks")
	tab.reads(t, "#charts", "12 granted peak ", "18 refused", "0 undecided")
	tab.reads(t, "#hot tr:nth-child(1)", "lock:order:47", " 3")
	tab.reads(t, "#events", flushed.Addr(), "quarantine begun: it lost its data", "unreachable: it is not connected")
	tab.reads(t, "#locks-title", "(12)")
	tab.reads(t, "#locks tr:nth-child(1)", "lock:order:4710 order-service (127.0.0.1:", " s ", " min ", "0 3 of 5 string 0 "+digest)
	tab.reads(t, "footer", "/metrics", "/readyz", "/status.json", "/locks.json")
	tab.reads(t, "header", "live", "version ")
	if text := tab.text(t, "body"); strings.Contains(text, "token") {
		t.Errorf("the page shows the value of a lock:\n%s", text)
	}
	var style string
	tab.evaluate(t, "getComputedStyle(document.querySelector('#events td.text')).whiteSpace", &style)
	if style != "pre-line" {
		t.Errorf("the lines of a refused reload are joined: %s", style)
	}
	tab.searches(t)
	if *screenshot != "" {
		keepBusy(t, client)
	}
	tab.keepPicture(t)
	tab.fits(t)
	tab.focuses(t)

	c.Masters[2].Kill()
	tab.reads(t, "#health", "Locks are stopped", "QUORUMLOST (deploy/INCIDENTS.md#quorumlost)", "2/5 vote, 3 needed")
	if len(tab.troubles) > 0 {
		t.Errorf("the page has reported\n%s", strings.Join(tab.troubles, "\n"))
	}
	c.Proxy.Finish(t)
	tab.reads(t, "#health", "No news from the proxy")
	tab.reads(t, "header", "not connected")
	c.Proxy.Start(t)
	tab.reads(t, "#health", "Locks are stopped") // without a reload of the page
	tab.reads(t, "header", "live")
}

// keepBusy takes, refuses and releases locks for most of a minute, so that the picture shows
// some life.
func keepBusy(t *testing.T, client *redis.Client) {
	t.Helper()
	end := time.Now().Add(50 * time.Second)
	for i := 0; time.Now().Before(end); i++ {
		key := fmt.Sprintf("lock:invoice:%d", i%7)
		rig.MustAcquire(t, client, key, holderToken, heldFor)
		for range rand.IntN(1 + i%7) {
			if ok, err := rig.Acquire(t.Context(), client, key, "another-token-of-somebody", rig.LongTTL); ok || err != nil {
				t.Fatalf("a held lock: %v %v", ok, err)
			}
		}
		if err := client.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond)
	}
}

// reads waits until a person reads these texts in a part of the page.
func (c *chromium) reads(t *testing.T, selector string, texts ...string) {
	t.Helper()
	rig.WaitFor(t, "the page shows the state in "+selector, func() error {
		shown := strings.Join(strings.Fields(c.text(t, selector)), " ")
		for _, text := range texts {
			if !strings.Contains(shown, strings.TrimSpace(text)) {
				return fmt.Errorf("no %q in %q", text, shown)
			}
		}
		return nil
	})
}

// searches checks that the search shows the locks whose keys contain a text, and all again
// without it.
func (c *chromium) searches(t *testing.T) {
	t.Helper()
	search := func(text string) {
		var done bool
		c.evaluate(t, fmt.Sprintf("search.value = %q, search.dispatchEvent(new Event('input'))", text), &done)
	}
	search("R:4715")
	c.reads(t, "#lock-note", "No lock that is held has this in its key.")
	search("r:4715")
	c.reads(t, "#locks-title", "(1)")
	c.reads(t, "#locks", "lock:order:4715")
	search("")
	c.reads(t, "#locks-title", "(12)")
}

// keepPicture checks the size of the picture, and writes it where the flag says. The shipped
// one must be of the same size in pixels.
func (c *chromium) keepPicture(t *testing.T) {
	t.Helper()
	picture := c.screenshot(t)
	if len(picture) > mostPictureBytes {
		t.Errorf("the picture takes %d bytes", len(picture))
	}
	if *screenshot != "" {
		if err := os.WriteFile(*screenshot, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open("../deploy/page.png")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := png.DecodeConfig(file)
	if err != nil || info.Size() > mostPictureBytes || shipped.Width != 1200 {
		t.Errorf("the shipped picture has %d bytes and %d pixels in width: %v", info.Size(), shipped.Width, err)
	}
}

// fits checks that a narrow screen needs no scrolling to the side, and that a person who
// prefers dark gets it.
func (c *chromium) fits(t *testing.T) {
	t.Helper()
	c.resize(t, 360, 800)
	rig.WaitFor(t, "the page fits a narrow screen", func() error {
		var width int
		if c.evaluate(t, "document.scrollingElement.scrollWidth", &width); width > 360 {
			return fmt.Errorf("it is %d pixels wide", width)
		}
		return nil
	})
	c.colours(t, "dark")
	rig.WaitFor(t, "the page is dark", func() error {
		var colour string
		if c.evaluate(t, "getComputedStyle(document.body).backgroundColor", &colour); colour != "rgb(16, 19, 24)" {
			return fmt.Errorf("it is %s", colour)
		}
		return nil
	})
}

// focuses checks that the keyboard reaches everything that can be used, and that each part
// has a name for people who do not see it.
func (c *chromium) focuses(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for range 14 {
		c.press(t, "Tab", 9)
		var name string
		c.evaluate(t, "document.activeElement.id || document.activeElement.getAttribute('href') || document.activeElement.getAttribute('aria-labelledby') || ''", &name)
		seen[name] = true
	}
	for _, want := range []string{"search", "locks-title", "events-title", "metrics", "readyz", "status.json", "locks.json"} {
		if !seen[want] {
			t.Errorf("the keyboard does not reach %s, but %v", want, seen)
		}
	}
	var nameless []string
	c.evaluate(t, "[...document.querySelectorAll('svg, section, ul, input, [role=region]')].filter(e => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')).map(e => e.outerHTML.slice(0, 80))", &nameless)
	if len(nameless) > 0 {
		t.Errorf("without a name: %s", nameless)
	}
}
