package redlock

import (
	"strings"
	"testing"
	"time"
)

// A right that the proxy's user lacks on the masters looks to clients like
// masters that are away, so the log has to tell.
func TestARightThatIsMissingIsLogged(t *testing.T) {
	masters := [3]*liveMaster{startLiveMaster(t), startLiveMaster(t), startLiveMaster(t)}
	set := joinMixedSet(t, masters)
	for _, m := range masters {
		m.must("ACL", "SETUSER", "default", "-hset")
	}
	hset := RunRequest{Keys: bytesOf([]string{key}), Args: bytesOf([]string{"HSET", key, tokenA, "1"})}
	for range 3 {
		if o := set.locker.Run(t.Context(), hset); o.Verdict != NoQuorum {
			t.Fatalf("%v %q", o.Verdict, o.Reply)
		}
	}
	acquire := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Minute}
	if o := set.locker.Acquire(t.Context(), acquire); o.Verdict != Won {
		t.Errorf("what is allowed: %+v", o)
	}
	text := set.log.String()
	for _, m := range []string{"m1", "m2", "m3"} {
		want := "grant its right to the proxy's user\" master=" + m + " error=\"NOPERM"
		if n := strings.Count(text, want); n > 1 || n == 0 && m == "m1" {
			t.Errorf("%s is told of %d times:\n%s", m, n, text)
		}
	}
	if strings.Contains(text, tokenA) {
		t.Errorf("the log has a lock's value:\n%s", text)
	}
}
