package redlock

import (
	"strings"
	"testing"
	"time"
)

// If the proxy's user lacks a right on the masters, clients see masters that seem away. So
// the log must name the right.
func TestARightThatIsMissingIsLogged(t *testing.T) {
	masters := [3]*liveMaster{startLiveMaster(t), startLiveMaster(t), startLiveMaster(t)}
	set := joinMixedSet(t, masters, startLoop(t))
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

// A master that cannot write is connected and its marker is whole, so it counts as voting. The log
// must say what is wrong with it. It has the code only: a script can put a lock's value into the text.
func TestWhyAMasterCannotWriteIsLogged(t *testing.T) {
	for code, how := range map[string]struct {
		begin []string
		want  string
	}{
		"NOREPLICAS": {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, "set its min-replicas-to-write to 0"},
		"OOM":        {[]string{"CONFIG", "SET", "maxmemory", "1"}, "raise its maxmemory"},
	} {
		t.Run(code, func(t *testing.T) {
			masters := [3]*liveMaster{startLiveMaster(t), startLiveMaster(t), startLiveMaster(t)}
			set := joinMixedSet(t, masters, startLoop(t))
			for _, m := range masters {
				m.must(how.begin...)
			}
			for range 3 {
				o := set.locker.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Minute})
				text := o.NoQuorumError() // a master is not asked again before it has carried out the undo
				if o.Verdict != NoQuorum || !strings.Contains(text, "answered with an error") && !strings.Contains(text, "could not be asked") {
					t.Fatalf("%v %s", o.Verdict, text)
				}
			}
			told := func(m string) int {
				return strings.Count(set.log.String(), how.want+"\" master="+m+" error="+code+"\n")
			}
			for limit := time.Now().Add(livePatience); told("m1") == 0 && time.Now().Before(limit); {
				time.Sleep(time.Millisecond)
			}
			if n := told("m1"); n != 1 {
				t.Errorf("told %d times:\n%s", n, set.log.String())
			}
		})
	}
}
