package session

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

// newInput makes an input to which a test gives what comes.
func newInput(t *testing.T, budget *Budget) *input {
	t.Helper()
	near, far := net.Pipe()
	in := &input{budget: budget, busy: new(busyTimer)}
	sock, err := proxytest.Loop(t).Adopt(near, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	in.begin(sock, nil)
	return in
}

// Memory follows what came, is charged beyond the small buffer, and is all given back.
func TestInputTakesWhatItNeeds(t *testing.T) {
	limit := int64(1 << 20)
	budget := NewBudget(func() int64 { return limit })
	in := newInput(t, budget)
	in.most = 1 << 19
	text := strings.Repeat("0123456789", 20_000)
	in.need = len(text)
	if err := receive(in, text); err != nil {
		t.Fatal(err)
	}
	if string(in.unread()) != text || budget.InUse() < int64(len(text)) {
		t.Errorf("%d bytes are unread, %d are charged", len(in.unread()), budget.InUse())
	}
	in.start += 10
	if got := string(in.unread()); got != text[10:] {
		t.Errorf("%d bytes are left", len(got))
	}
	in.start += len(text) - 10
	if err := in.fill(); err != errNothing || budget.InUse() != 0 || in.buf != nil {
		t.Errorf("%v, and %d bytes are charged by an empty input", err, budget.InUse())
	}
	in.endFill()
	limit = 10
	if err := receive(in, text); !errors.Is(err, errNoMemory) {
		t.Error(err)
	}
	in.release()
	if budget.InUse() != 0 {
		t.Errorf("%d bytes are charged in the end", budget.InUse())
	}
}

func TestUnfinishedCommandIsBounded(t *testing.T) {
	const limit = 70_000
	for _, length := range []int{limit + 1, 100_000, 200_000} {
		in := newInput(t, NewBudget(func() int64 { return 1 << 30 }))
		in.most = limit
		in.need = length
		err := receive(in, string(bytes.Repeat([]byte("x"), length)))
		if err == nil {
			err = in.fill() // the session has found no end
		}
		if !errors.Is(err, errQueryTooLong) || len(in.unread()) > limit+1 {
			t.Errorf("of %d bytes: %v with %d bytes unread", length, err, len(in.unread()))
		}
	}
}

// receive has a session wait for text, which comes as from a loop.
func receive(in *input, text string) error {
	for have := len(in.unread()); len(in.unread()) < have+len(text); {
		if err := in.fill(); err == nil {
			continue
		} else if err != errNothing {
			return err
		}
		next := text[len(in.unread())-have:]
		in.Received([]byte(next[:min(len(next), 16<<10)]))
		in.endFill()
	}
	return nil
}

// What is read ahead comes first, then what ended the stream.
func TestReadAhead(t *testing.T) {
	budget := NewBudget(func() int64 { return 1 << 20 })
	in := newInput(t, budget)
	in.Received([]byte("ab"))
	in.Received([]byte("cd"))
	in.Ended(io.EOF)
	if in.arrived() != 4 || in.ended() == nil || budget.InUse() != 4 {
		t.Errorf("%d bytes are charged", budget.InUse())
	}
	if err := in.fill(); err != nil || string(in.unread()) != "abcd" || in.arrived() != in.filled() || budget.InUse() != 0 {
		t.Errorf("%q %v, %d charged", in.unread(), err, budget.InUse())
	}
	in.start += 4
	if err := in.fill(); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
}
