package integration

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/child"
)

// A conformanceClient is one process of a library's program and one client of
// its locks. The program is told a line at a time and answers each with one
// line; words are separated by one blank, and it ends when its input does:
//
//	version                     the version of the library, as loaded
//	key NAME                    the keys whose presence means that NAME is held
//	acquire NAME TTLMS          one try: yes, no
//	wait NAME TTLMS LIMITMS     the library's own waiting acquire: yes, no
//	extend NAME TTLMS           at least so much is left afterwards: yes, no
//	release NAME                what this client took: yes, no
//	steal NAME                  released by somebody who does not hold it: yes, no
//	held NAME                   anybody has it: yes, no
//	mine NAME                   this client has it: yes, no
//
// A verb for which the library has no means is answered "unsupported", what is
// neither yes nor no "error TEXT".
type conformanceClient struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string // closed at the end of its output
	log     *child.Log  // what was said, and what it wrote to its standard error
}

// A saidError is what the library threw, as its program words it.
type saidError string

func (e saidError) Error() string { return string(e) }

// startConformanceClient starts a program that takes the server at port for
// its one Redis. The caller ends it with finish or kill.
func startConformanceClient(t *testing.T, name string, program clientProgram, port int, selects string) (*conformanceClient, error) {
	t.Helper()
	words := append(slices.Clone(program.words), fmt.Sprint(port), selects)
	c := &conformanceClient{name: name, cmd: exec.Command(words[0], words[1:]...), answers: make(chan string, 1), log: &child.Log{}}
	c.cmd.Env = append(os.Environ(), program.env...)
	c.cmd.Stderr = c.log
	child.EndWithParent(c.cmd)
	c.cmd.WaitDelay = time.Second
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(c.answers)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.answers <- lines.Text()
		}
	}()
	return c, nil
}

// tell says something without waiting for the answer.
func (c *conformanceClient) tell(words ...any) error {
	question := strings.TrimSuffix(fmt.Sprintln(words...), "\n")
	fmt.Fprintf(c.log, "> %s\n", question)
	_, err := fmt.Fprintln(c.in, question)
	return err
}

// answer returns the next line. That the library could not do what it was
// asked is an error.
func (c *conformanceClient) answer() (string, error) {
	select {
	case answer, open := <-c.answers:
		if !open {
			return "", fmt.Errorf("%s has ended", c.name)
		}
		fmt.Fprintf(c.log, "< %s\n", answer)
		if strings.HasPrefix(answer, "error") {
			return "", fmt.Errorf("%s: %w", c.name, saidError(answer))
		}
		return answer, nil
	case <-time.After(2 * patience):
		return "", fmt.Errorf("%s does not answer", c.name)
	}
}

func (c *conformanceClient) ask(words ...any) (string, error) {
	if err := c.tell(words...); err != nil {
		return "", fmt.Errorf("%s: %w", c.name, err)
	}
	return c.answer()
}

// kill ends the client without a word to the server.
func (c *conformanceClient) kill() {
	_ = c.cmd.Process.Kill()
	c.drain()
}

// finish ends the client's input, upon which it must end by itself.
func (c *conformanceClient) finish() error {
	c.in.Close()
	overdue := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer overdue.Stop()
	if err := c.drain(); err != nil {
		return fmt.Errorf("%s, at the end of its input: %w", c.name, err)
	}
	return nil
}

func (c *conformanceClient) drain() error {
	for range c.answers {
	}
	return c.cmd.Wait()
}
