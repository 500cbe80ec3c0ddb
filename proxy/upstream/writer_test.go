package upstream

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

// Whole values of others follow one that comes in parts.
func TestNoValueStandsInsideAnother(t *testing.T) {
	l := proxytest.Loop(t)
	near, far := proxytest.Pair(t)
	sock, err := l.Adopt(near, proxytest.Deaf{})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	w := NewWriter(sock)
	w.Lock()
	_ = w.Append([]byte("+first\r\n"))
	_ = w.pass([]byte("$4\r\nab"), true)
	_ = w.Append([]byte("+a\r\n"))
	_ = w.Append([]byte("+b\r\n"))
	if n := w.Backlog(); n < len("+a\r\n+b\r\n") {
		t.Errorf("%d bytes wait", n)
	}
	_ = w.pass([]byte("cd\r\n"), false)
	_ = w.Append([]byte("+c\r\n"))
	w.Unlock()
	hears(t, far, "+first\r\n$4\r\nabcd\r\n+a\r\n+b\r\n+c\r\n")
}

// Who waits behind the upstream's value goes on after it, or when the client has gone.
func TestWaitingBehindAValue(t *testing.T) {
	for _, ends := range []bool{true, false} {
		l := proxytest.Loop(t)
		near, far := proxytest.Pair(t)
		sock, err := l.Adopt(near, proxytest.Deaf{})
		if err != nil {
			t.Fatal(err)
		}
		w, task := NewWriter(sock), proxytest.Task(t, l)
		long := strings.Repeat("x", mostUnread+1)
		w.Lock()
		_ = w.pass([]byte("$4\r\nab"), true)
		_ = w.Append([]byte(long))
		w.Unlock()
		waited := make(chan struct{})
		go func() { defer close(waited); w.AwaitDrained(task) }()
		eventually(t, "it waits", func() bool { w.Lock(); defer w.Unlock(); return w.waits == task })
		select {
		case <-waited:
			t.Fatal("it does not wait")
		default:
		}
		if ends {
			w.Lock()
			_ = w.pass([]byte("cd\r\n"), false)
			w.Unlock()
			hears(t, far, "$4\r\nabcd\r\n"+long)
		} else {
			sock.Abandon()
			task.Unpark() // as the session's input does
		}
		await(t, "its end", waited)
		sock.Close()
	}
}
