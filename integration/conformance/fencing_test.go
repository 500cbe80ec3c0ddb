package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/integration/rig"
)

// TestPausedHolderIsFencedOff: a client takes a lock and its token, and is stopped until
// its lock has ended and another client has written. It goes on and writes. The resource
// refuses that, because the other's token is larger.
func TestPausedHolderIsFencedOff(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	other := c.AddProxy(t, rig.Options{})
	php, jedis := php(t, []string{"fenced_holder.php"}), java(t, []string{"FencedHolder", "jedis-8"})
	for _, test := range []struct {
		name          string
		sleeper, next clientProgram
	}{
		{"phpredis", php, jedis},
		{"Jedis", jedis, php},
	} {
		lock, resource := "lock:fenced:"+test.name, "resource:"+test.name
		start := func(name string, program clientProgram, proxy *rig.Proxy) *fencedHolder {
			program.words = append(slices.Clone(program.words), fmt.Sprint(proxy.Port), lock, resource, name)
			client, err := startClient(name, program)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := client.finish(); err != nil {
					t.Errorf("%v\n%s", err, client.log)
				}
			})
			return &fencedHolder{client, t}
		}
		sleeper := start("the sleeper", test.sleeper, c.Proxy)
		first := sleeper.number()
		sleeper.pause()
		sleeper.says("write") // it reads this when it goes on
		next := start("the next holder", test.next, other)
		second := next.number() // the sleeper's lock has ended
		if first >= second {
			t.Errorf("%s: the token %d, and for the next holder %d", test.name, first, second)
		}
		next.says("write")
		if answer := next.hear(); answer != "written" {
			t.Errorf("%s: the next holder's write is %s, want written", test.name, answer)
		}
		sleeper.signal(syscall.SIGCONT)
		if answer := sleeper.hear(); answer != "refused" {
			t.Errorf("%s: the sleeper's write is %s, want refused", test.name, answer)
		}
		kept := c.Upstream.Direct.HGetAll(t.Context(), resource).Val()
		if kept["writer"] != "the next holder" || kept["token"] != fmt.Sprint(second) {
			t.Errorf("%s: the resource has %v, want what the next holder wrote with token %d", test.name, kept, second)
		}
		c.WaitGone(t, lock)
	}
}

// A fencedHolder is a program that prints its token, and writes when it is told.
type fencedHolder struct {
	*client
	t *testing.T
}

// number returns the number that the program prints.
func (p *fencedHolder) number() int64 {
	p.t.Helper()
	line := p.hear()
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		p.t.Fatalf("%s: %q is no number\n%s", p.name, line, p.log)
	}
	return n
}

func (p *fencedHolder) says(line string) {
	if err := p.tell(line); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fencedHolder) hear() string {
	answer, err := p.answer()
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.log)
	}
	return answer
}

func (p *fencedHolder) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v: %v", p.name, s, err)
	}
}

// pause stops the program and returns when each of its threads stands still.
func (p *fencedHolder) pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	p.t.Cleanup(func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) })
	rig.WaitFor(p.t, p.name+" stops", func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			return fmt.Errorf("its threads are not listed (%v)", err)
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err != nil {
				return err
			}
			// The state is the word after the name, which is in brackets.
			if after := string(stat[strings.LastIndexByte(string(stat), ')')+1:]); !strings.HasPrefix(after, " T") {
				return fmt.Errorf("%s is in state%.2s", thread, after)
			}
		}
		return nil
	})
}
