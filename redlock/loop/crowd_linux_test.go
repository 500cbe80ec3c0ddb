package loop

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// Nobody waits for a crowd that leaves at once.
func TestACrowdThatLeavesDelaysNobody(t *testing.T) {
	const crowd = 600
	l := start(t)
	var left atomic.Int64
	var theirs []net.Conn
	for range crowd {
		_, c := l.adopt(t, "unix", counter{&left})
		theirs = append(theirs, c)
	}
	stays := newRecorder()
	at := make(chan int64, 1)
	stays.received = func([]byte) { at <- left.Load() }
	_, client := l.adopt(t, "unix", stays)
	l.flush(t)
	entered, blocked := make(chan struct{}), make(chan struct{})
	l.Do(func() { close(entered); <-blocked })
	<-entered
	for _, c := range theirs {
		_ = c.Close()
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	close(blocked)
	select {
	case n := <-at:
		if n > crowd/4 {
			t.Errorf("%d had left before", n)
		}
	case <-time.After(30 * time.Second):
		t.Error("it is not read")
	}
	for deadline := time.Now().Add(30 * time.Second); left.Load() < crowd; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d have left", left.Load())
		}
	}
}

// A counter counts the sockets whose other side has ended.
type counter struct{ left *atomic.Int64 }

func (counter) Received([]byte) {}
func (c counter) Ended(error)   { c.left.Add(1) }
