package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

// An ownerOf is the owner of a stream to a real server.
type ownerOf struct {
	quietOwner
	dial func(context.Context) (net.Conn, error)
	up   chan struct{} // has one item for each connection
	down chan error    // why the last connections ended
}

func (ownerOf) Timeout() time.Duration    { return 100 * time.Millisecond }
func (ownerOf) MaxReply() int64           { return 8 << 20 }
func (ownerOf) Suspended() time.Duration  { return 0 }
func (o *ownerOf) Server() Server         { return Server{Dial: o.dial} }
func (o *ownerOf) Up(Greeting, time.Time) { o.up <- struct{}{} }
func (o *ownerOf) Judge(Check) Judgement  { return Judgement{Votes: true} }
func (o *ownerOf) Down(why error)         { o.down <- why }

// onEachLink tests a stream on a connection that the kernel polls, and on one that is pumped.
func onEachLink(t *testing.T, address func(t *testing.T) (network, address string), test func(t *testing.T, s *Stream, o *ownerOf)) {
	for _, by := range []string{"polled", "pumped"} {
		t.Run(by, func(t *testing.T) {
			network, address := address(t)
			o := &ownerOf{up: make(chan struct{}, 100), down: make(chan error, 100)}
			o.dial = func(ctx context.Context) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if by == "pumped" {
					return struct{ net.Conn }{conn}, err
				}
				return conn, err
			}
			ctx, end := context.WithCancel(context.Background())
			var running sync.WaitGroup
			s := New(Options{Owner: o, Log: slog.New(slog.DiscardHandler), Marker: "marker", Pause: time.Hour, Loop: startLoop(t)})
			running.Go(func() { s.Run(ctx) })
			t.Cleanup(func() {
				end()
				running.Wait()
				if s.link != nil || len(s.calls) > 0 {
					t.Error("the stream has ended, and something is left")
				}
			})
			o.awaitUp(t)
			test(t, s, o)
		})
	}
}

// startLoop runs a loop until the test has ended.
func startLoop(t *testing.T) *loop.Loop {
	l, end, err := loop.Start(slog.New(slog.DiscardHandler))
	t.Cleanup(end)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func aRealServer(t *testing.T) (network, address string) { return "unix", livetest.Start(t).Socket }

func (o *ownerOf) awaitUp(t *testing.T) {
	t.Helper()
	select {
	case <-o.up:
	case <-time.After(livetest.Patience):
		t.Fatal("there is no connection")
	}
}

// answered is what askers heard, in order.
type answered struct {
	mu      sync.Mutex
	replies []string
	errs    []error
	all     sync.WaitGroup
}

func (a *answered) ask(t *testing.T, s *Stream, args ...string) {
	t.Helper()
	a.all.Add(1)
	asker := AskerFunc(func(replies [][]byte, _ Judgement, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		defer a.all.Done()
		a.replies, a.errs = append(a.replies, string(bytes.Join(replies, nil))), append(a.errs, err)
	})
	for deadline := time.Now().Add(livetest.Patience); !s.Send(Call{Replies: 1, Asker: asker}, Sending{Frames: resp.AppendCommand(nil, args...)}, time.Now()); {
		if time.Now().After(deadline) {
			t.Fatal("the stream takes no calls")
		}
		time.Sleep(time.Millisecond)
	}
}

// Answers come in the order of the calls, whether they are small or come in many pieces.
func TestAnswersOfAnySize(t *testing.T) {
	onEachLink(t, aRealServer, func(t *testing.T, s *Stream, _ *ownerOf) {
		var a answered
		var want []string
		for i, size := range []int{1, 100, 16 << 10, 1, 300 << 10, 1, 2 << 20, 1, 1, 70 << 10, 1} {
			value := strings.Repeat(strconv.Itoa(i%10), size)
			a.ask(t, s, "SET", "key", value)
			a.ask(t, s, "GET", "key")
			want = append(want, "+OK\r\n", string(resp.AppendBulk(nil, value)))
			if i%3 == 0 {
				a.all.Wait()
			}
		}
		a.all.Wait()
		if !slices.Equal(a.replies, want) {
			t.Errorf("there are %d answers, and %d in order were wanted", len(a.replies), len(want))
		}
	})
}

// The answers of a large batch hold up nobody else on the loop.
func TestManyAnswersAreHandedOutBesideTheLoop(t *testing.T) {
	onEachLink(t, aRealServer, func(t *testing.T, s *Stream, _ *ownerOf) {
		var all sync.WaitGroup
		all.Add(manyCalls + 1)
		free := make(chan struct{})
		first := AskerFunc(func([][]byte, Judgement, error) {
			defer all.Done()
			s.loop.Do(func() { close(free) })
			select {
			case <-free:
			case <-time.After(livetest.Patience):
				t.Error("the loop waits for an asker")
			}
		})
		other := AskerFunc(func([][]byte, Judgement, error) { all.Done() })
		s.loop.Do(func() { // in one round, so that it is one batch
			ping := Sending{Frames: resp.AppendCommand(nil, "PING")}
			s.Send(Call{Replies: 1, Asker: first}, ping, time.Now())
			for range manyCalls {
				s.Send(Call{Replies: 1, Asker: other}, ping, time.Now())
			}
		})
		all.Wait()
	})
}

// Many goroutines ask at the same time. Each gets its own answers in its order.
func TestManyAskAtOnce(t *testing.T) {
	onEachLink(t, aRealServer, func(t *testing.T, s *Stream, _ *ownerOf) {
		var clients sync.WaitGroup
		for c := range 20 {
			clients.Go(func() {
				var a answered
				var want []string
				for i := range 200 {
					a.ask(t, s, "ECHO", strconv.Itoa(1000*c+i))
					want = append(want, string(resp.AppendBulk(nil, strconv.Itoa(1000*c+i))))
					if i%(c+1) == 0 {
						a.all.Wait()
					}
				}
				a.all.Wait()
				if !slices.Equal(a.replies, want) {
					t.Errorf("client %d heard %.200q", c, a.replies)
				}
			})
		}
		clients.Wait()
	})
}

// A connection that ends gives up its calls, and the next one goes on.
func TestAConnectionThatEnds(t *testing.T) {
	onEachLink(t, aRealServer, func(t *testing.T, s *Stream, o *ownerOf) {
		var serves answered // the owner hears of a connection a moment before the stream uses it
		serves.ask(t, s, "PING")
		serves.all.Wait()
		for what, breaks := range map[string]func(){
			"the server closes it":   func() { var a answered; a.ask(t, s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"); a.all.Wait() },
			"the stream gives it up": func() { s.GiveUp(errors.New("wrong")) },
			"an asker has a defect": func() {
				s.Send(Call{Replies: 1, Asker: AskerFunc(func(_ [][]byte, _ Judgement, err error) {
					if err == nil {
						panic("defect")
					}
				})}, Sending{Frames: resp.AppendCommand(nil, "PING")}, time.Now())
			},
		} {
			breaks()
			o.awaitUp(t)
			var a answered
			a.ask(t, s, "ECHO", what)
			if a.all.Wait(); a.errs[0] != nil || a.replies[0] != string(resp.AppendBulk(nil, what)) {
				t.Errorf("after %q: %q %v", what, a.replies, a.errs)
			}
		}
	})
}

// An answer that is too long is dropped, and those around it come whole on the same connection.
func TestAnAnswerThatIsTooLong(t *testing.T) {
	onEachLink(t, aRealServer, func(t *testing.T, s *Stream, _ *ownerOf) {
		var a, large answered
		a.ask(t, s, "SETRANGE", "large", strconv.Itoa(9<<20), "x")
		a.ask(t, s, "CLIENT", "ID")
		large.ask(t, s, "GET", "large")
		a.ask(t, s, "CLIENT", "ID")
		large.all.Wait()
		a.all.Wait()
		if large.errs[0] != ErrTooLong || large.replies[0] != "" || len(large.errs) != 1 {
			t.Errorf("the answer is %.100q %v", large.replies, large.errs)
		}
		if a.errs[2] != nil || a.replies[2] != a.replies[1] {
			t.Errorf("the connection is %q before and %q behind it: %v", a.replies[1], a.replies[2], a.errs[2])
		}
	})
}

// Who asked hears that an answer is too long before the rest of it has come.
func TestAnAnswerThatIsTooLongIsKnownEarly(t *testing.T) {
	o := &ownerOf{}
	s := New(Options{Owner: o, Log: slog.New(slog.DiscardHandler)})
	in := answers{Reader: resp.NewReader(nil, 16, 64)}
	var told []error
	asks := func(asker Asker, check bool) {
		s.calls = append(s.calls, Call{Replies: 1, Asker: asker, check: check})
	}
	asks(AskerFunc(func([][]byte, Judgement, error) { t.Error("an answer was handed out before its check") }), false)
	asks(AskerFunc(func(_ [][]byte, _ Judgement, err error) { told = append(told, err) }), false)
	asks(nil, true)
	for _, piece := range []string{":1\r\n", "$9000000\r\n", strings.Repeat("x", 8<<20), "x"} {
		if err := in.Feed([]byte(piece)); err != nil {
			t.Fatal(err)
		}
		if err := s.handOut(&in); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || told[0] != ErrTooLong {
		t.Errorf("the asker has heard %v", told)
	}
	if calls, _ := s.giveUpCalls(down); len(calls) != 3 || s.debtOf(&calls[1]) != nil {
		t.Errorf("%d calls are given up", len(calls))
	}
}

// A server that reads nothing is given up when a call may be unanswered no longer. What
// waited is lost, and what was not sent is certainly not executed.
func TestAServerThatReadsNothing(t *testing.T) {
	t.Parallel()
	onEachLink(t, deafServer, func(t *testing.T, s *Stream, o *ownerOf) {
		began := time.Now()
		var sent, unsent answered
		large := strings.Repeat("x", 12<<20)
		sent.ask(t, s, "SET", "key", large)
		for isTaken := false; !isTaken; time.Sleep(time.Millisecond) { // until it is being written
			s.mu.Lock()
			isTaken = s.unwritten == 0
			s.mu.Unlock()
		}
		unsent.ask(t, s, "PING")
		var lost sync.WaitGroup
		lost.Go(sent.all.Wait)
		lost.Go(unsent.all.Wait)
		ended := make(chan struct{})
		go func() { lost.Wait(); close(ended) }()
		for waits := true; waits; {
			select {
			case <-ended:
				waits = false
			case <-time.After(10 * time.Millisecond):
				s.Beat(time.Now(), false)
			}
		}
		if took := time.Since(began); took < s.stall() {
			t.Errorf("it was given up after %v", took)
		}
		if sent.errs[0] != errLost || unsent.errs[0] != ErrUnsent {
			t.Errorf("the calls got %v and %v", sent.errs, unsent.errs)
		}
	})
}

// deafServer greets the first connection and reads nothing more. It refuses others.
func deafServer(t *testing.T) (network, address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	ended := make(chan struct{})
	running.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, ":7\r\n"+string(resp.AppendBulk(nil, "run_id:deaf\r\nredis_mode:standalone\r\n"))+string(resp.AppendBulk(nil, "role:master\r\n"))+string(roleOfSole))
		<-ended
	})
	t.Cleanup(func() {
		close(ended)
		listener.Close()
		running.Wait()
	})
	return "tcp", listener.Addr().String()
}
