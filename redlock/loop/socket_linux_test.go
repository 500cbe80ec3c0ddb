package loop

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func forEachNetwork(t *testing.T, test func(t *testing.T, network string)) {
	for _, network := range []string{"tcp", "unix", "pumped", "tls", "pumped tls"} {
		t.Run(network, func(t *testing.T) { test(t, network) })
	}
}

func TestEcho(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		l := start(t)
		r := newRecorder()
		var s *Socket
		var ready sync.WaitGroup
		ready.Add(1)
		r.received = func(p []byte) { ready.Wait(); _ = s.Write(p) }
		var theirs net.Conn
		s, theirs = l.adopt(t, network, r)
		ready.Done()
		if s.RemoteAddr().String() != theirs.LocalAddr().String() || s.LocalAddr().String() != theirs.RemoteAddr().String() {
			t.Errorf("the addresses are %v and %v", s.RemoteAddr(), s.LocalAddr())
		}
		want := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
		go func() { _, _ = theirs.Write(want) }()
		if got := readFull(t, theirs, len(want)); !bytes.Equal(got, want) {
			t.Error("the echo differs")
		}
		theirs.Close()
		r.untilEnded(t, io.EOF)
		s.Close()
		s.Close()
		r.untilEnded(t, io.EOF, net.ErrClosed)
		l.flush(t)
		if s.Write([]byte("late")) != net.ErrClosed || r.ends() != 2 {
			t.Error("the socket goes on after its end")
		}
	})
}

func TestASocketBeginsPaused(t *testing.T) { forEachNetwork(t, beginsPaused) }

func beginsPaused(t *testing.T, network string) {
	l := start(t)
	r := newRecorder()
	ours, theirs := pair(t, network)
	s, err := l.Adopt(ours, r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(theirs, "early")
	theirs.Close()
	l.flush(t)
	if r.bytes() != "" || r.ends() != 0 {
		t.Error("it was read before Resume")
	}
	s.Resume()
	r.untilEnded(t, io.EOF)
	if r.got.String() != "early" {
		t.Errorf("got %q", r.got.String())
	}
}

func TestNewsBeforeTheLoopKnowsTheSocket(t *testing.T) {
	l := start(t)
	r := newRecorder()
	ours, theirs := pair(t, "tcp")
	fmt.Fprint(theirs, "all")
	theirs.Close()
	adopted := make(chan *Socket, 1)
	l.Do(func() {
		s, err := l.Adopt(ours, r)
		if err != nil {
			t.Error(err)
		}
		for l.poll.poll(false, l.told) == 0 { // takes the news of the end, and nobody hears of them
		}
		adopted <- s
	})
	(<-adopted).Resume()
	r.untilEnded(t, io.EOF)
	if r.bytes() != "all" {
		t.Errorf("got %q", r.bytes())
	}
}

func TestPauseAndResume(t *testing.T) { forEachNetwork(t, pauseAndResume) }

func pauseAndResume(t *testing.T, network string) {
	l := start(t)
	r := newRecorder()
	s, theirs := l.adopt(t, network, r)
	fmt.Fprint(theirs, "a")
	r.until(t, "the first byte", func() bool { return r.got.Len() == 1 })
	s.Pause()
	l.flush(t)
	fmt.Fprint(theirs, "b")
	l.flush(t)
	if r.bytes() != "a" {
		t.Errorf("got %q while paused", r.bytes())
	}
	s.Resume()
	r.until(t, "the second byte", func() bool { return r.got.Len() == 2 })
}

// Each writer's messages arrive whole and in its order.
func TestManyGoroutinesWrite(t *testing.T) { forEachNetwork(t, manyGoroutinesWrite) }

func manyGoroutinesWrite(t *testing.T, network string) {
	const writers, each = 8, 2000
	l := start(t)
	s, theirs := l.adopt(t, network, newRecorder())
	for w := range writers {
		go func() {
			for i := range each {
				var message [8]byte
				binary.BigEndian.PutUint32(message[:], uint32(w))
				binary.BigEndian.PutUint32(message[4:], uint32(i))
				_ = s.Write(message[:])
			}
		}()
	}
	var next [writers]uint32
	got := readFull(t, theirs, 8*writers*each)
	for ; len(got) > 0; got = got[8:] {
		w, i := binary.BigEndian.Uint32(got), binary.BigEndian.Uint32(got[4:])
		if next[w] != i {
			t.Fatalf("writer %d: message %d came instead of %d", w, i, next[w])
		}
		next[w]++
	}
}

// drained counts the calls that WhenDrained has the loop make. It returns false if nothing waits.
func (r *recorder) drained(s *Socket, calls *int) bool {
	return s.WhenDrained(0, func() { r.note(func() { *calls++ }) })
}

// A peer that does not read delays nobody else, and who waits is told when it has read, once each.
func TestPeerThatDoesNotRead(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		l := start(t)
		r := newRecorder()
		s, theirs := l.adopt(t, network, r)
		calls := 0
		if r.drained(s, &calls) {
			t.Error("something waits at once")
		}
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		const total = 16 << 20 // more than the kernel takes
		for range total / len(chunk) {
			_ = s.Write(chunk)
		}
		if s.WhenDrained(total, func() { t.Error("it is called although no more may wait") }) || !r.drained(s, &calls) || !r.drained(s, &calls) {
			t.Fatal("it cannot be waited for")
		}
		other, others := l.adopt(t, network, newRecorder())
		_ = other.Write([]byte("hello"))
		readFull(t, others, 5)
		r.note(func() {
			if calls != 0 {
				t.Error("it is called before the peer has read")
			}
		})
		readFull(t, theirs, total)
		r.until(t, "the calls", func() bool { return calls == 2 })
		if s.Waiting() != 0 || r.drained(s, &calls) {
			t.Error("bytes wait after the calls")
		}
		_ = s.Write([]byte("more"))
		readFull(t, theirs, 4)
		l.flush(t)
		r.note(func() {
			if calls != 2 {
				t.Errorf("%d calls of two", calls)
			}
		})
	})
}

// CloseWrite comes after what waits, and the other direction stays open.
func TestCloseWrite(t *testing.T) { forEachNetwork(t, closeWrite) }

func closeWrite(t *testing.T, network string) {
	l := start(t)
	r := newRecorder()
	s, theirs := l.adopt(t, network, r)
	want := bytes.Repeat([]byte("y"), 8<<20)
	_ = s.Write(want)
	s.CloseWrite()
	_ = s.Write([]byte("dropped"))
	got, err := io.ReadAll(theirs)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d of %d bytes: %v", len(got), len(want), err)
	}
	fmt.Fprint(theirs, "still open")
	r.until(t, "bytes after the half-close", func() bool { return r.got.String() == "still open" })
	theirs.Close()
	r.untilEnded(t, io.EOF)
}

// What was written goes out before Close, in however many rounds.
func TestCloseSendsWhatTheKernelTakes(t *testing.T) { forEachNetwork(t, closeSends) }

func closeSends(t *testing.T, network string) {
	l := start(t)
	r := newRecorder()
	s, theirs := l.adopt(t, network, r)
	l.Do(func() { _ = s.Write([]byte("last ")); l.Do(func() { _ = s.Write([]byte("words")); s.Close() }) })
	got, err := io.ReadAll(theirs)
	if err != nil || string(got) != "last words" {
		t.Errorf("read %q: %v", got, err)
	}
	r.untilEnded(t, net.ErrClosed)
}

func TestCloseInEachState(t *testing.T) { forEachNetwork(t, closeInEachState) }

func closeInEachState(t *testing.T, network string) {
	states := map[string]func(s *Socket, theirs net.Conn){
		"new":     func(*Socket, net.Conn) {},
		"paused":  func(s *Socket, theirs net.Conn) { s.Pause(); fmt.Fprint(theirs, "x") },
		"shut":    func(s *Socket, _ net.Conn) { s.CloseWrite() },
		"blocked": func(s *Socket, _ net.Conn) { _ = s.Write(make([]byte, 16<<20)) },
		"eof":     func(_ *Socket, theirs net.Conn) { theirs.Close() },
		"twice":   func(s *Socket, _ net.Conn) { s.Close() },
		"half eof": func(s *Socket, theirs net.Conn) {
			s.CloseWrite()
			_ = theirs.(interface{ CloseWrite() error }).CloseWrite()
		},
	}
	for name, enter := range states {
		for _, settled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s settled=%v", name, settled), func(t *testing.T) {
				t.Parallel() // two of a pump wait for lingerTime
				l := start(t)
				r := newRecorder()
				s, theirs := l.adopt(t, network, r)
				enter(s, theirs)
				if settled {
					l.flush(t)
				}
				s.Close()
				r.until(t, "the last call", func() bool {
					return len(r.ended) > 0 && !errors.Is(r.ended[len(r.ended)-1], io.EOF)
				})
				l.flush(t)
				if r.ends() > 2 {
					t.Errorf("ended %v", r.ended)
				}
				if _, err := io.Copy(io.Discard, theirs); name == "blocked" && !strings.HasSuffix(network, "tls") && err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Abandon does not wait for a peer that does not read.
func TestAbandon(t *testing.T) { forEachNetwork(t, abandon) }

func abandon(t *testing.T, network string) {
	l := start(t)
	r := newRecorder()
	s, theirs := l.adopt(t, network, r)
	_ = s.Write(make([]byte, 16<<20))
	s.Close()
	s.Abandon()
	r.untilEnded(t, net.ErrClosed)
	if n, _ := io.Copy(io.Discard, theirs); n == 16<<20 {
		t.Error("everything was sent")
	}
}

// Without epoll all connections are pumped.
func TestALoopWithoutEpoll(t *testing.T) {
	l := run(t, func(log *slog.Logger) (*Loop, error) { return newLoop(log, newSleeper()), nil })
	r := newRecorder()
	s, theirs := l.adopt(t, "tcp", r)
	for i := range 100 {
		fmt.Fprintf(theirs, "%09d", i)
		r.until(t, "bytes", func() bool { return r.got.Len() == 9*(i+1) })
		_ = s.Write([]byte("answer"))
		readFull(t, theirs, 6)
	}
	theirs.Close()
	r.untilEnded(t, io.EOF)
	l.stop()
	r.untilEnded(t, io.EOF, net.ErrClosed)
}

// A connection that breaks is told once, also to a writer.
func TestReset(t *testing.T) {
	l := start(t)
	r := newRecorder()
	s, theirs := l.adopt(t, "tcp", r)
	_ = s.Write(make([]byte, 16<<20))
	calls := 0
	if !r.drained(s, &calls) {
		t.Fatal("nothing waits")
	}
	_ = theirs.(*net.TCPConn).SetLinger(0)
	theirs.Close()
	r.untilEnded(t, unix.ECONNRESET)
	if s.Waiting() != 0 || calls != 1 {
		t.Errorf("%d bytes wait for a broken connection, and who waited is told %d times", s.Waiting(), calls)
	}
}

func TestAdoptKeepsTheConnectionsOptions(t *testing.T) {
	l := start(t)
	ours, _ := pair(t, "tcp")
	raw, err := ours.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 4321) })
	s, err := l.Adopt(ours, newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	l.Do(func() {
		for option, want := range map[int]int{unix.TCP_USER_TIMEOUT: 4321, unix.TCP_NODELAY: 1} {
			if got, err := unix.GetsockoptInt(s.source.(*descriptor).fd, unix.IPPROTO_TCP, option); got != want || err != nil {
				t.Errorf("option %d is %d: %v", option, got, err)
			}
		}
	})
	l.flush(t)
	if _, err := ours.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is still its caller's: %v", err)
	}
}

// A pipe has no descriptor, no buffer and no half-close.
func TestAPipeIsPumped(t *testing.T) {
	l := start(t)
	r := newRecorder()
	ours, theirs := net.Pipe()
	s, err := l.Adopt(ours, r)
	if err != nil {
		t.Fatal(err)
	}
	s.Resume()
	go fmt.Fprint(theirs, "to the loop")
	r.until(t, "bytes", func() bool { return r.got.String() == "to the loop" })
	_ = s.Write([]byte("from the loop"))
	calls := 0
	if !r.drained(s, &calls) {
		t.Error("a pipe holds bytes that nobody reads")
	}
	readFull(t, theirs, len("from the loop"))
	r.until(t, "the call", func() bool { return calls == 1 })
	l.Do(func() { s.source.control(func(uintptr) { t.Error("a pipe has a descriptor") }) })
	s.CloseWrite()
	if _, err := io.ReadAll(theirs); err != nil {
		t.Error(err)
	}
	r.until(t, "the last call", func() bool { return len(r.ended) > 0 })
}

func TestAReceiversPanicEndsItsSocketOnly(t *testing.T) {
	l := start(t)
	r, other := newRecorder(), newRecorder()
	r.received = func([]byte) { panic("broken receiver") }
	_, theirs := l.adopt(t, "tcp", r)
	_, others := l.adopt(t, "tcp", other)
	fmt.Fprint(theirs, "x")
	r.untilEnded(t, ErrPanicked)
	if _, err := io.ReadAll(theirs); err != nil {
		t.Error(err)
	}
	fmt.Fprint(others, "y")
	other.until(t, "the other socket", func() bool { return other.got.Len() == 1 })
	l.stop()
	if !strings.Contains(l.log.String(), "broken receiver") || !strings.Contains(l.log.String(), "socket_linux_test.go") {
		t.Errorf("the log has no panic with its stack: %s", l.log)
	}
}

func TestAfterRunEverythingRefuses(t *testing.T) { forEachNetwork(t, everythingRefuses) }

func everythingRefuses(t *testing.T, network string) {
	l := start(t)
	r := newRecorder()
	s, theirs := l.adopt(t, network, r)
	l.stop()
	r.untilEnded(t, net.ErrClosed)
	if _, err := io.ReadAll(theirs); err != nil {
		t.Error(err)
	}
	ours, _ := pair(t, network)
	if _, err := l.Adopt(ours, r); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Adopt: %v", err)
	}
	if _, err := ours.Write([]byte("x")); err != nil {
		t.Errorf("a refused connection is not its caller's: %v", err)
	}
	ours.Close()
	if l.Do(func() {}) || l.AtEnd(func() {}) || l.Go(func(*Task) {}) != nil {
		t.Error("the loop takes orders after its end")
	}
	_ = s.Write([]byte("x"))
	s.Resume()
	s.CloseWrite()
	s.Close()
}

// AtEnd comes after the tasks and before the writes of a round, so that it completes a batch.
func TestAtEndCompletesABatch(t *testing.T) {
	l := start(t)
	s, theirs := l.adopt(t, "tcp", newRecorder())
	batch, rounds := []byte{}, 0
	for i := range 3 {
		l.Go(func(*Task) {
			batch = append(batch, byte('a'+i))
			if len(batch) == 1 {
				l.AtEnd(func() { rounds++; _ = s.Write(batch); batch = nil })
			}
		})
	}
	if got := readFull(t, theirs, 3); string(got) != "abc" {
		t.Errorf("got %q", got)
	}
}

// unwatchable is a connection with a descriptor that epoll refuses.
type unwatchable struct {
	net.Conn
	file *os.File
}

func (u unwatchable) SyscallConn() (syscall.RawConn, error) { return u.file.SyscallConn() }

// What the kernel does not watch is pumped.
func TestAdoptPumpsWhatTheKernelRefuses(t *testing.T) {
	l := start(t)
	file, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ours, theirs := pair(t, "tcp")
	r := newRecorder()
	s, err := l.Adopt(unwatchable{ours, file}, r)
	if err != nil {
		t.Fatal(err)
	}
	s.Resume()
	fmt.Fprint(theirs, "x")
	r.until(t, "a byte", func() bool { return r.got.Len() == 1 })
	_ = s.Write([]byte("y"))
	readFull(t, theirs, 1)
}

// What is long is not copied whole, also behind something else and where two goroutines pump it.
func TestSendTakesNoMemoryTwice(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		l := start(t)
		s, theirs := l.adopt(t, network, newRecorder())
		long := bytes.Repeat([]byte("x"), 1<<20)
		sent := make(chan struct{})
		l.Go(func(task *Task) {
			defer close(sent)
			_ = s.Write([]byte("first"))
			s.Send(task, long)
			clear(long) // it is the caller's again
			_ = s.Write([]byte("last"))
		})
		got := readFull(t, theirs, 10)
		_, pumped := s.source.(*pump)
		if waiting := s.Waiting(); pumped && waiting > mostWritten {
			t.Errorf("%d bytes wait", waiting)
		}
		got = append(got, readFull(t, theirs, len("first")+len(long)+len("last")-10)...)
		if string(got) != "first"+strings.Repeat("x", 1<<20)+"last" {
			t.Error("other bytes come")
		}
		waitFor(t, sent, "the end of Send")
	})
}

// Send and AwaitDrained end with the connection.
func TestSendEndsWithTheConnection(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		l := start(t)
		s, _ := l.adopt(t, network, newRecorder())
		begun, ended := make(chan struct{}), make(chan struct{})
		l.Go(func(task *Task) {
			defer close(ended)
			close(begun)
			s.Send(task, make([]byte, 16<<20))
			s.AwaitDrained(task, 0)
			if s.Write([]byte("x")) == nil {
				t.Error("it ended although the connection is there")
			}
		})
		<-begun
		s.Abandon()
		waitFor(t, ended, "the end of Send")
	})
}

// One who panics when all is sent ends the connection, and the others who wait are told.
func TestAPanicOfOneWhoWaitsForTheEnd(t *testing.T) {
	l := start(t)
	r := newRecorder()
	s, _ := l.adopt(t, "tcp", r)
	waited := make(chan struct{})
	l.Go(func(task *Task) {
		defer close(waited)
		_ = s.Write([]byte("x"))
		s.WhenDrained(0, func() { panic("made for the test") })
		s.AwaitDrained(task, 0)
	})
	waitFor(t, waited, "the other one")
	r.untilEnded(t, ErrPanicked)
}
