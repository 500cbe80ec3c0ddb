package stream

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

// A judgingOwner lets the answers of a batch count, and counts the checks.
type judgingOwner struct {
	quietOwner
	checks *int
}

func (judgingOwner) Suspended() time.Duration { return 0 }

func (o judgingOwner) Judge(Check) Judgement {
	*o.checks++
	return Judgement{Votes: true}
}

// Answers may come in any pieces. A call gets its answer when the whole check behind its
// batch is there, and not before. The time of the answer is not before that either.
func TestABatchIsAnsweredWithItsCheck(t *testing.T) {
	const check = "$6\r\nmarker\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
	const first, second = "+a\r\n$1\r\nb\r\n" + check, "+c\r\n" + check
	for piece := 1; piece <= len(first+second); piece++ {
		checks, heard := 0, []string{}
		s := New(Options{Owner: judgingOwner{checks: &checks}, Log: slog.New(slog.DiscardHandler), Marker: "marker"})
		s.takeOver(nil, Greeting{}, time.Now())
		s.sole, s.due, s.askedInfo = true, false, time.Now()
		var fed time.Time // when the last bytes came
		send := func(replies int) {
			s.Send(Call{Replies: replies, Asker: AskerFunc(func(replies [][]byte, j Judgement, _ error) {
				heard = append(heard, string(slices.Concat(replies...)))
				if j.Received.Before(fed) {
					t.Errorf("%q was received at %v, but its last byte came at %v", replies, j.Received, fed)
				}
			})}, Sending{Frames: resp.AppendCommand(nil, "PING")}, time.Now())
		}
		send(1)
		send(1)
		if sent := string(s.flush(nil)); strings.Count(sent, "PING") != 2 || strings.Count(sent, "TIME") != 1 || !strings.HasSuffix(sent, string(timeAndRole)) {
			t.Fatalf("the batch is %q", sent)
		}
		send(1)
		if sent := string(s.flush(nil)); strings.Count(sent, "PING") != 1 || !strings.HasSuffix(sent, string(timeAndRole)) {
			t.Fatalf("the second batch is %q", sent)
		}
		if sent := s.flush(nil); len(sent) > 0 {
			t.Fatalf("a batch of nothing is %q", sent)
		}
		in := &answers{Reader: resp.NewReader(nil, 16, 1<<10)}
		for came, rest := 0, first+second; rest != ""; {
			p := rest[:min(piece, len(rest))]
			came, rest = came+len(p), rest[len(p):]
			fed = time.Now()
			if err := errors.Join(in.Feed([]byte(p)), s.handOut(in)); err != nil {
				t.Fatalf("%d bytes at a time: %v", piece, err)
			}
			wanted, answers := 0, 0
			if came >= len(first) {
				wanted, answers = 1, 2
			}
			if rest == "" {
				wanted, answers = 2, 3
			}
			if checks != wanted || len(heard) != answers {
				t.Fatalf("after %d bytes, %d at a time, %d checks were judged, and the askers heard %q", came, piece, checks, heard)
			}
		}
		if !slices.Equal(heard, []string{"+a\r\n", "$1\r\nb\r\n", "+c\r\n"}) || !s.Idle() {
			t.Errorf("%d bytes at a time: they heard %q", piece, heard)
		}
		if err := errors.Join(in.Feed([]byte("+")), s.handOut(in)); !errors.Is(err, resp.ErrUnasked) {
			t.Errorf("a reply that nobody asked for: %v", err)
		}
	}
}

// A large answer may take longer than a stall, as long as its bytes come.
func TestASlowAnswerIsWaitedForWhileItComes(t *testing.T) {
	s := New(Options{Owner: quietOwner{}, Embedded: true, Loop: startLoop(t), Log: slog.New(slog.DiscardHandler)})
	near, far := net.Pipe()
	defer far.Close()
	l, err := s.newLink(&Connection{Conn: near})
	if err != nil {
		t.Fatal(err)
	}
	s.takeOver(l, Greeting{}, time.Now())
	s.Send(Call{Replies: 1, Asker: AskerFunc(func([][]byte, Judgement, error) {})}, Sending{Frames: resp.AppendCommand(nil, "DUMP", "k")}, time.Now())
	s.flush(nil)
	s.calls[s.head].sent = time.Now().Add(-time.Hour)
	in := &answers{Reader: resp.NewReader(nil, 16, 1<<10)}
	if err := errors.Join(in.Feed([]byte("$100\r\nabc")), s.handOut(in)); err != nil {
		t.Fatal(err)
	}
	isGivenUp := func() bool {
		for range 2 { // the loop closes it in the round after
			done := make(chan struct{})
			s.loop.Do(func() { close(done) })
			<-done
		}
		return loop.Late != s.loop.Wait(0, l.ended)
	}
	if s.Beat(time.Now(), false); isGivenUp() {
		t.Error("the connection was given up while an answer came")
	}
	if !s.suspended(time.Now()) {
		t.Error("the master is asked for locks meanwhile")
	}
	if s.Beat(time.Now().Add(2*s.stall()), false); !isGivenUp() {
		t.Error("the connection was not given up when nothing came any more")
	}
}

// A master that recorded no longer TTL is told again before the next lock. An error says so, and 0.
func TestATTLThatWasNotRecordedIsSentAgain(t *testing.T) {
	const check = "$6\r\nmarker\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
	for recorded, again := range map[string]bool{":1\r\n": false, ":0\r\n": true, "-OOM too much\r\n": true} {
		checks := 0
		s := New(Options{Owner: judgingOwner{checks: &checks}, Log: slog.New(slog.DiscardHandler), Marker: "marker",
			Raise: func(dst []byte, longest time.Duration) []byte {
				return resp.AppendCommand(dst, "RAISE", longest.String())
			}})
		s.takeOver(nil, Greeting{}, time.Now())
		s.sole, s.due, s.askedInfo = true, false, time.Now()
		send := func() (raises bool) {
			s.Send(Call{Replies: 1, Asker: AskerFunc(func([][]byte, Judgement, error) {})}, Sending{Frames: resp.AppendCommand(nil, "PING"), Lives: time.Minute}, time.Now())
			return strings.Contains(string(s.flush(nil)), "RAISE")
		}
		if !send() {
			t.Fatal("the first lock's TTL is not sent")
		}
		in := &answers{Reader: resp.NewReader(nil, 16, 1<<10)}
		if err := errors.Join(in.Feed([]byte(recorded+"+PONG\r\n"+check)), s.handOut(in)); err != nil || checks != 1 {
			t.Fatal(err, checks)
		}
		if got := send(); got != again {
			t.Errorf("after the reply %q the TTL is sent again: %v, want %v", recorded, got, again)
		}
	}
}
