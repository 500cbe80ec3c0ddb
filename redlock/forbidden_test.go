package redlock

import (
	"strings"
	"testing"
	"time"
)

// If the proxy's user lacks a right on the masters, clients see masters that seem away. So
// the log must name the right.
func TestARightThatIsMissingIsLogged(t *testing.T) {
	set := startLiveSet(t, 3)
	set.all([]string{"ACL", "SETUSER", "default", "-hset"})
	hset := RunRequest{Keys: bytesOf([]string{key}), Args: bytesOf([]string{"HSET", key, tokenA, "1"})}
	for range 3 {
		if o := set.Run(t.Context(), hset); o.Verdict != NoQuorum {
			t.Fatalf("%v %q", o.Verdict, o.Reply)
		}
	}
	acquire := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Minute}
	if o := set.Acquire(t.Context(), acquire); o.Verdict != Won {
		t.Errorf("what is allowed: %+v", o)
	}
	told := func(m string) int {
		return strings.Count(set.log.String(), "grant the command to the proxy's user\" master="+m+" error=\"NOPERM")
	}
	for limit := time.Now().Add(livePatience); told("m1") == 0 && time.Now().Before(limit); {
		time.Sleep(time.Millisecond) // the others' answers were enough for a verdict
	}
	for _, m := range []string{"m1", "m2", "m3"} {
		if n := told(m); n > 1 || n == 0 && m == "m1" {
			t.Errorf("%s is told of %d times:\n%s", m, n, set.log.String())
		}
	}
	text := set.log.String()
	if strings.Contains(text, tokenA) {
		t.Errorf("the log has a lock's value:\n%s", text)
	}
}
