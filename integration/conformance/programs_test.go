package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/child"
	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
)

// cliClient is redis-cli, started again for every command, as shell scripts do.
type cliClient struct {
	t      *testing.T
	server []string
}

func (c *cliClient) run(args ...string) string {
	c.t.Helper()
	out, err := exec.Command("redis-cli", append(append([]string{}, c.server...), args...)...).Output()
	answer := strings.TrimRight(string(out), "\n")
	if err != nil || strings.Contains(answer, "QUORUMLOST") {
		c.t.Fatalf("redis-cli %q: %q %v", args, answer, err)
	}
	return answer
}

func (c *cliClient) acquire(key, token string, ttl time.Duration) bool {
	return c.run("SET", key, token, "NX", "PX", fmt.Sprint(ttl.Milliseconds())) == "OK"
}

func (c *cliClient) owner(key string) string { return c.run("GET", key) }

func (c *cliClient) extend(key, token string, ttl time.Duration) bool {
	return c.run("EVAL", corpus.ExtendScripts["pexpire"], "1", key, token, fmt.Sprint(ttl.Milliseconds())) == "1"
}

func (c *cliClient) release(key, token string) bool {
	return c.run("EVAL", corpus.ReleaseScripts["one line"], "1", key, token) == "1"
}

// talker is a program that reads one line at a time and answers each with one line.
type talker struct {
	t       *testing.T
	name    string
	in      io.Writer
	out     *bufio.Scanner
	log     *child.Log
	process *os.Process
	told    string // the last line that it was told
}

func startTalker(t *testing.T, words ...string) *talker {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	talk := &talker{t: t, name: words[0], in: in, out: bufio.NewScanner(out), log: &child.Log{}}
	cmd.Stderr = talk.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	talk.process = cmd.Process
	overdue := time.AfterFunc(3*rig.Patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", words[0], err, talk.log)
		}
		overdue.Stop()
	})
	return talk
}

func (p *talker) ask(words ...any) string {
	p.t.Helper()
	p.tell(words...)
	return p.hear()
}

func (p *talker) tell(words ...any) {
	p.t.Helper()
	p.told = strings.TrimSuffix(fmt.Sprintln(words...), "\n")
	if _, err := fmt.Fprintln(p.in, p.told); err != nil {
		p.t.Fatalf("%s, %q: %v\n%s", p.name, p.told, err, p.log)
	}
}

func (p *talker) hear() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("%s, %q: it ended\n%s", p.name, p.told, p.log)
	}
	return p.out.Text()
}

func (p *talker) yes(words ...any) bool {
	p.t.Helper()
	switch answer := p.ask(words...); answer {
	case "yes":
		return true
	case "no":
	default:
		p.t.Fatalf("%s, %q: %q", p.name, words, answer)
	}
	return false
}

func (p *talker) acquire(key, token string, ttl time.Duration) bool {
	return p.yes("acquire", key, token, ttl.Milliseconds())
}

func (p *talker) owner(key string) string { return p.ask("owner", key) }

func (p *talker) extend(key, token string, ttl time.Duration) bool {
	return p.yes("extend", key, token, ttl.Milliseconds())
}

func (p *talker) release(key, token string) bool { return p.yes("release", key, token) }
