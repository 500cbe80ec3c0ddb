package loop

import (
	"slices"
	"strings"
	"testing"
)

// A readOrder notes whose bytes are read. The loop writes it until done is closed.
type readOrder struct {
	names []string
	most  int // done is closed after so many
	done  chan struct{}
}

// client adopts a socket whose reads are noted under this name. send has bytes come from it.
func (o *readOrder) client(t *testing.T, l *running, name string, heard func()) (s *Socket, send func(bytes int)) {
	t.Helper()
	r := newRecorder()
	r.received = func([]byte) {
		if o.names = append(o.names, name); len(o.names) == o.most {
			close(o.done)
		}
		heard()
	}
	s, theirs := l.adopt(t, "unix", r)
	return s, func(bytes int) {
		if _, err := theirs.Write([]byte(strings.Repeat("x", bytes))); err != nil {
			t.Error(err)
		}
	}
}

// hold has the loop stand still until goOn is called.
func (r *running) hold(t *testing.T) (goOn func()) {
	t.Helper()
	held, release := make(chan struct{}), make(chan struct{})
	r.Do(func() { close(held); <-release })
	waitFor(t, held, "the loop to be held up")
	return func() { close(release) }
}

// While many sockets bring much, one that brings little waits for a few of them only.
func TestALittleWaitsForFewThatBringMuch(t *testing.T) {
	const crowd = 5 * fewLater
	for _, c := range []struct {
		name  string
		bytes int  // that each of the crowd sends
		like  bool // each is read like a pipeline
	}{{"pipelines", muchRead, false}, {"replies to pipelines", 1, true}} {
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			o := &readOrder{most: crowd + 1, done: make(chan struct{})}
			pipeline, sendPipeline := o.client(t, l, "pipeline", func() {})
			sendPipeline(muchRead)
			_, sendLittle := o.client(t, l, "little", func() {})
			loopSends := false
			heard := func() {
				if loopSends {
					loopSends = false
					sendLittle(1)
				}
			}
			var sends []func(int)
			for range crowd {
				s, send := o.client(t, l, "much", heard)
				if c.like {
					s.ReadLike(pipeline)
				}
				sends = append(sends, send)
			}
			for _, send := range sends {
				send(c.bytes)
			}
			waitFor(t, o.done, "the first bytes")
			l.flush(t)

			goOn := l.hold(t)
			o.names, o.most, o.done = nil, crowd+1, make(chan struct{})
			loopSends = true
			for _, send := range sends {
				send(c.bytes)
			}
			goOn()
			waitFor(t, o.done, "all to be read")
			if at := slices.Index(o.names, "little"); at > fewLater {
				t.Errorf("%d were read before it, and a round reads %d", at, fewLater)
			}
		})
	}
}

// Sockets that bring much are read in each round, also while many others are ready.
func TestThoseThatBringMuchAreNotStarved(t *testing.T) {
	const much, little = 2 * fewLater, 4 * mostReads
	l := start(t)
	o := &readOrder{most: much, done: make(chan struct{})}
	var sends []func()
	for range much {
		_, send := o.client(t, l, "much", func() {})
		send(muchRead)
		sends = append(sends, func() { send(muchRead) })
	}
	for range little {
		_, send := o.client(t, l, "little", func() {})
		sends = append(sends, func() { send(1) })
	}
	waitFor(t, o.done, "the first bytes")
	l.flush(t)

	goOn := l.hold(t)
	o.names, o.most, o.done = nil, much+little, make(chan struct{})
	for _, send := range sends {
		send()
	}
	goOn()
	waitFor(t, o.done, "all to be read")
	slices.Reverse(o.names)
	if after := slices.Index(o.names, "much"); after < mostReads {
		t.Errorf("the last of them was read when %d others were left", after)
	}
}

// Nobody waits for those that bring much if they are alone.
func TestHowManyThatBringMuchARoundReads(t *testing.T) {
	for _, c := range []struct {
		calm int // rounds
		want int
	}{{0, fewLater}, {1, fewLater}, {calmRounds - 1, fewLater}, {calmRounds, mostLater}, {calmRounds + 1, mostLater}} {
		if got := laterReads(c.calm); got != c.want {
			t.Errorf("after %d calm rounds: %d, want %d", c.calm, got, c.want)
		}
	}
}

// One socket that brings little makes the rounds short again.
func TestALittleEndsTheCalm(t *testing.T) {
	for _, c := range []struct {
		name   string
		little bool
		want   int // of the crowd, in the round
	}{{"alone", false, mostLater}, {"with a little", true, fewLater}} {
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			o := &readOrder{most: mostLater, done: make(chan struct{})}
			_, sendLittle := o.client(t, l, "little", func() {})
			begins, inRound := false, make(chan int, 1)
			var sends []func(int)
			for range mostLater {
				_, send := o.client(t, l, "much", func() {
					if begins {
						l.AtEnd(func() { inRound <- len(o.names) })
						begins = false
					}
				})
				send(muchRead)
				sends = append(sends, send)
			}
			waitFor(t, o.done, "the first bytes")
			l.flush(t)

			goOn := l.hold(t)
			o.names, o.most, o.done = nil, mostLater, make(chan struct{})
			begins, l.calm = true, calmRounds
			if c.little {
				o.most++
				sendLittle(1)
			}
			for _, send := range sends {
				send(muchRead)
			}
			goOn()
			waitFor(t, o.done, "all to be read")
			read := <-inRound // the round may still go on
			if c.little {
				read--
			}
			if read != c.want {
				t.Errorf("the first round read %d of them, want %d", read, c.want)
			}
		})
	}
}
