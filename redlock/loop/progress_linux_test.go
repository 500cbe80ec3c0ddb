package loop

import (
	"io"
	"testing"
	"time"
)

// isAbout allows for the time that the test takes itself.
func isAbout(got, want time.Duration) bool { return got > want-time.Minute && got < want+time.Minute }

// Silence counts from the last bytes that came, and a stall while bytes wait and none are sent.
func TestSilentAndStalled(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		l := start(t)
		r := newRecorder()
		s, theirs := l.adopt(t, network, r)
		silent := func(after time.Duration) time.Duration { return s.Silent(time.Now().Add(after)) }
		if got := silent(time.Hour); !isAbout(got, time.Hour) {
			t.Errorf("silent for %v", got)
		}
		const total = 16 << 20 // more than the kernel takes
		_ = s.Write(make([]byte, total))
		for end := time.Now().Add(30 * time.Second); s.Stalled(time.Now().Add(time.Hour)) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it is not stalled although the other side takes nothing")
			}
		}
		began := s.tookAt.Load()
		readFull(t, theirs, total/2)
		if s.tookAt.Load() == began {
			t.Error("its time does not begin again when something is taken")
		}
		readFull(t, theirs, total/2)
		for end := time.Now().Add(30 * time.Second); s.Stalled(time.Now().Add(time.Hour)) != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it is stalled after everything was sent")
			}
		}
	})
}

// The other side is quiet if it neither sends nor takes what waits for it, while it may be read.
func TestQuiet(t *testing.T) {
	l := start(t)
	r := newRecorder()
	s, theirs := l.adopt(t, "tcp", r)
	quiet := func() time.Duration { return s.Quiet(time.Now()) }
	age := func() { // as if everything had happened an hour ago
		s.came(s.cameAt.Load() - int64(time.Hour))
		s.took(s.cameAt.Load())
	}
	if age(); !isAbout(quiet(), time.Hour) {
		t.Errorf("quiet for %v", quiet())
	}
	_ = s.Write([]byte("x"))
	readFull(t, theirs, 1)
	l.flush(t)
	if !isAbout(quiet(), time.Hour) {
		t.Error("bytes that the kernel takes at once pass for news of the other side")
	}
	s.Pause()
	if quiet() != 0 {
		t.Error("time passes while nothing may be read")
	}
	s.Resume()
	if !isAbout(quiet(), 0) {
		t.Error("the time of the pause counts afterwards")
	}
	l.flush(t)
	age()
	_, _ = io.WriteString(theirs, "x")
	r.until(t, "a byte", func() bool { return r.got.Len() == 1 })
	if !isAbout(quiet(), 0) {
		t.Error("it passes for quiet although it has sent something")
	}
	age()
	_ = s.Write(make([]byte, 16<<20))
	readFull(t, theirs, 16<<20)
	for s.Waiting() > 0 {
		time.Sleep(time.Millisecond)
	}
	if !isAbout(quiet(), 0) {
		t.Error("it passes for quiet although it has taken what waited")
	}
}
