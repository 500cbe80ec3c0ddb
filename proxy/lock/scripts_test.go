package lock

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/proxy/unruled"
)

func TestScriptCacheFindsExactText(t *testing.T) {
	c := NewScripts(1<<16, nil)
	text := []byte("return  1\r\n")
	sum := sha1.Sum(text)
	sha := c.add(text)
	if sha != hex.EncodeToString(sum[:]) {
		t.Fatalf("name %s, want the SHA1 %x", sha, sum)
	}
	text[0] = 'x' // the caller's buffer is used again
	for _, name := range []string{sha, strings.ToUpper(sha)} {
		if got, ok := c.Get([]byte(name)); !ok || string(got) != "return  1\r\n" {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "x", sha[1:], sha + "0", "z" + sha[1:], strings.Repeat("0", 40), sha + "00"} {
		if got, ok := c.Get([]byte(name)); ok {
			t.Errorf("%q finds %q", name, got)
		}
	}
	if sha := c.add(nil); sha != "da39a3ee5e6b4b0d3255bfef95601890afd80709" {
		t.Errorf("the empty text is %s", sha)
	}
	c.Flush()
	if _, ok := c.Get([]byte(sha)); ok || c.bytes != 0 {
		t.Errorf("after a flush a text is known: %v, %d bytes", ok, c.bytes)
	}
}

func TestScriptCacheForgetsTheLeastRecentlyUsed(t *testing.T) {
	text := func(i int) []byte { return fmt.Appendf(nil, "return %03d", i) }
	size := len(text(0)) + scriptOverhead
	forgotten := 0
	c := NewScripts(3*size, func() { forgotten++ })
	names := make([]string, 6)
	for i := range 3 {
		names[i] = c.add(text(i))
	}
	c.Get([]byte(names[0]))
	c.add(text(1)) // known: it only becomes recent
	for i := range 2 {
		names[3+i] = c.add(text(3 + i))
	}
	for i, want := range []bool{false, true, false, true, true} {
		if _, ok := c.Get([]byte(names[i])); ok != want {
			t.Errorf("text %d known: %v, want %v", i, ok, want)
		}
	}
	big := c.add([]byte(strings.Repeat("x", 3*size)))
	if _, ok := c.Get([]byte(big)); ok || c.bytes != 3*size {
		t.Errorf("a text larger than the cache is kept: %v, %d bytes", ok, c.bytes)
	}
	if len(c.bySHA) != c.locking.Len() || forgotten != 2 {
		t.Errorf("%d names for %d texts, and %d were told to be forgotten", len(c.bySHA), c.locking.Len(), forgotten)
	}
	widest := c.add([]byte(strings.Repeat("x", 3*size-scriptOverhead)))
	if _, ok := c.Get([]byte(widest)); !ok {
		t.Error("a text as large as the cache is not kept")
	}
}

// A name that is no hex finds no text, not even one whose SHA1 has zeros where the hex ends.
func TestScriptCacheKnowsNoNameWithoutHex(t *testing.T) {
	c, sha := NewScripts(1<<16, nil), ""
	for i := 0; !strings.HasSuffix(sha, "00"); i++ {
		c.Flush()
		sha = c.add(fmt.Appendf(nil, "return %d", i))
	}
	if got, ok := c.Get([]byte(sha[:38] + "zz")); ok {
		t.Errorf("it finds %q", got)
	}
}

// Sessions that send one text at the same time have it counted once.
func TestATextThatSessionsSendAtOnceIsKeptOnce(t *testing.T) {
	c := NewScripts(1<<30, nil)
	for i := range 50 {
		text := fmt.Appendf(nil, "return %d --%s", i, strings.Repeat("x", 1<<16))
		begin := make(chan struct{})
		var sessions sync.WaitGroup
		for range 4 {
			sessions.Go(func() { <-begin; c.Register(text) })
		}
		close(begin)
		sessions.Wait()
	}
	if n := c.locking.Len(); n != 50 {
		t.Errorf("50 texts are kept as %d", n)
	}
}

// However many scripts run on ordinary keys, those that run on lock keys stay.
func TestScriptsOfOrdinaryKeysDriveOutNoneOfLocks(t *testing.T) {
	text := func(i int) []byte { return fmt.Appendf(nil, "return %03d", i) }
	name := func(i int) []byte { return fmt.Appendf(nil, "%x", sha1.Sum(text(i))) }
	c := NewScripts(3*(len(text(0))+scriptOverhead), nil)
	ordinary := func(i int) { c.Learn("eval", [][]byte{nil, text(i), []byte("0")}) }
	wantKnown := func(which ...int) {
		t.Helper()
		for i := range 20 {
			if known := c.get(name(i), false) != nil; known != slices.Contains(which, i) {
				t.Errorf("script %d is known: %v", i, known)
			}
		}
	}
	ordinary(0)
	c.Register(text(1))
	ordinary(2)
	if _, known := c.Get(name(0)); !known { // it has run on ordinary keys, and runs on lock keys now
		t.Error("an EVALSHA on lock keys does not find the text of an EVAL on others")
	}
	for i := 3; i < 10; i++ {
		ordinary(i)
	}
	wantKnown(0, 1, 9)
	ordinary(9) // again: it stays one of others
	ordinary(10)
	wantKnown(0, 1, 10)
	c.Register(text(9))
	ordinary(10) // there is no room for it
	wantKnown(0, 1, 9)
	c.Register(text(11))
	wantKnown(1, 9, 11)
	if c.Flush(); c.bytes != 0 || c.locking.Len()+c.ordinary.Len() > 0 {
		t.Errorf("%d bytes are left after a flush", c.bytes)
	}
}

// A text that masters would be long busy with is not kept, so its EVALSHA is NOSCRIPT.
func TestScriptCacheKeepsNoLongText(t *testing.T) {
	c := NewScripts(1<<20, nil)
	c.SetLimits(1<<20, 100)
	for size, kept := range map[int]bool{100: true, 101: false} {
		if _, known := c.Get([]byte(c.add([]byte(strings.Repeat("-", size))))); known != kept {
			t.Errorf("a text of %d bytes is kept: %v", size, known)
		}
	}
}

func TestScriptCacheLooksUpWithoutAllocating(t *testing.T) {
	c := NewScripts(1<<16, nil)
	text := []byte("return redis.call('get', KEYS[1])")
	sha := []byte(c.add(text))
	if n := testing.AllocsPerRun(100, func() { c.Get(sha); c.Register(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestScriptCacheIsShared(t *testing.T) {
	c := NewScripts(8*(scriptOverhead+16), nil)
	var sessions sync.WaitGroup
	for i := range 4 {
		sessions.Go(func() {
			for n := range 500 {
				text := fmt.Appendf(nil, "return %d", (n*(i+1))%20)
				if got, ok := c.Get([]byte(c.add(text))); ok && string(got) != string(text) {
					t.Errorf("%q for %q", got, text)
				}
				if n%100 == 0 {
					c.Flush()
				}
			}
		})
	}
	sessions.Wait()
	sum := 0
	for e := c.locking.Front(); e != nil; e = e.Next() {
		sum += len(e.Value.(*cachedScript).text) + scriptOverhead
	}
	if sum != c.bytes || sum > c.maxBytes {
		t.Errorf("%d bytes are counted as %d, of %d allowed", sum, c.bytes, c.maxBytes)
	}
}

// It is remembered of a text that it acquires, for as long as the text is known.
func TestScriptCacheRemembersWhatAcquires(t *testing.T) {
	c := NewScripts(1<<16, nil)
	text, other := []byte("return 1"), []byte("return 2")
	c.Acquired(text)
	if c.Acquires(text) {
		t.Error("a text that is not known acquires")
	}
	c.Register(text)
	c.Register(other)
	c.Acquired(text)
	c.Register(text)
	if !c.Acquires(text) || c.Acquires(other) {
		t.Errorf("acquire: %t, %t, want only the first", c.Acquires(text), c.Acquires(other))
	}
	c.Flush()
	c.Register(text)
	if c.Acquires(text) {
		t.Error("a text acquires that was forgotten")
	}
}

// add registers a text and returns its SHA1 as clients write it.
func (c *Scripts) add(text []byte) (sha string) {
	c.Register(text)
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// EVALSHA finds the Shape that EVAL or SCRIPT LOAD has left.
func TestLearnReturnsTheShape(t *testing.T) {
	c := NewScripts(1<<16, nil)
	words := func(text ...string) (args [][]byte) {
		for _, word := range text {
			args = append(args, []byte(word))
		}
		return args
	}
	const text = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end"
	loaded := c.Learn("script|load", words("SCRIPT", "LOAD", text))
	if !loaded.Deletes || loaded.ID == 0 {
		t.Errorf("it is %+v", loaded)
	}
	sha := c.add([]byte(text))
	for _, args := range [][][]byte{words("EVAL", text, "1", "k"), words("EVAL_RO", text, "1", "k"), words("EVALSHA", sha, "1", "k"), words("EVALSHA", strings.ToUpper(sha), "1", "k")} {
		if got := c.Learn(strings.ToLower(string(args[0])), args); got != loaded {
			t.Errorf("%q is %+v, want %+v", args, got, loaded)
		}
	}
	if other := c.Learn("eval", words("EVAL", text+" ", "0")); other.ID == loaded.ID {
		t.Error("another text has the same ID")
	}
	for _, args := range [][][]byte{
		words("EVALSHA", strings.Repeat("0", 40), "0"), words("EVALSHA"), words("EVAL"), words("GET", sha), words("SCRIPT|LOAD", "LOAD"), words("SCRIPT|LOAD", "LOAD", text, text),
	} {
		if got := c.Learn(strings.ToLower(string(args[0])), args); got != (unruled.Shape{}) {
			t.Errorf("%q is %+v", args, got)
		}
	}
}

// A script exists if both planes can run it, or this one if there is no other.
func TestScriptExists(t *testing.T) {
	c := NewScripts(1<<16, nil)
	names := [][]byte{[]byte(c.add([]byte("return 1"))), []byte(c.add([]byte("return 2"))), []byte(strings.Repeat("0", 40))}
	for upstream, want := range map[string]string{
		"":                         "*3\r\n:1\r\n:1\r\n:0\r\n",
		"*3\r\n:1\r\n:0\r\n:1\r\n": "*3\r\n:1\r\n:0\r\n:0\r\n",
	} {
		if got := string(c.Exist([]byte(upstream), names)); got != want {
			t.Errorf("%q of the upstream: %q, want %q", upstream, got, want)
		}
	}
}
