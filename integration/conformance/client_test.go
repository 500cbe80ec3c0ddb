package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"redlock-proxy/integration/child"
	"redlock-proxy/integration/rig"
)

// A client is one process of a library's program and one client of its locks.
// The test writes one line to the program at a time, and the program answers each with one
// line. Words are separated by one space. The program ends at the end of its input.
//
//	version                     the version of the library, as loaded
//	key NAME                    the keys whose presence means that NAME is held
//	acquire NAME TTLMS          one try: yes, no
//	wait NAME TTLMS LIMITMS     the library's own waiting acquire: yes, no
//	extend NAME TTLMS           afterwards at least TTLMS are left: yes, no
//	release NAME                releases this client's lock: yes, no
//	steal NAME                  somebody who does not hold it releases it: yes, no
//	held NAME                   anybody has it: yes, no
//	mine NAME                   this client has it: yes, no
//
// The answer is "unsupported" if the library has no means for a verb, and "error TEXT" if
// the outcome is neither yes nor no.
type client struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string // closed at the end of its output
	log     *child.Log  // all lines of both sides, and the program's standard error
}

// A saidError is an error of the library, in the words of its program.
type saidError string

func (e saidError) Error() string { return string(e) }

// startClient starts a program with more arguments: the port of its one Redis, and what selects the library.
// The caller ends the program with finish or kill.
func startClient(name string, program clientProgram, more ...string) (*client, error) {
	words := append(slices.Clone(program.words), more...)
	c := &client{name: name, cmd: exec.Command(words[0], words[1:]...), answers: make(chan string, 1), log: &child.Log{}}
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

// tell sends a line and does not wait for the answer.
func (c *client) tell(words ...any) error {
	question := strings.TrimSuffix(fmt.Sprintln(words...), "\n")
	fmt.Fprintf(c.log, "> %s\n", question)
	_, err := fmt.Fprintln(c.in, question)
	return err
}

// answer returns the next line. It returns an error if that line reports an error of the
// library.
func (c *client) answer() (string, error) {
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
	case <-time.After(2 * rig.Patience):
		return "", fmt.Errorf("%s does not answer", c.name)
	}
}

func (c *client) ask(words ...any) (string, error) {
	if err := c.tell(words...); err != nil {
		return "", fmt.Errorf("%s: %w", c.name, err)
	}
	return c.answer()
}

// kill kills the client, so that it sends nothing more to the server.
func (c *client) kill() {
	_ = c.cmd.Process.Kill()
	c.drain()
}

// finish closes the client's input. The program must then end by itself.
func (c *client) finish() error {
	c.in.Close()
	overdue := time.AfterFunc(rig.Patience, func() { _ = c.cmd.Process.Kill() })
	defer overdue.Stop()
	if err := c.drain(); err != nil {
		return fmt.Errorf("%s, at the end of its input: %w", c.name, err)
	}
	return nil
}

func (c *client) drain() error {
	for range c.answers {
	}
	return c.cmd.Wait()
}
