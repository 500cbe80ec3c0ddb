package loop

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
)

// TestOrder plays testdata/order/*.txt: who waits for whom, when much is to be done at once.
//
//	20 much             new sockets of this name
//	first: read first   what Socket.ReadFirst says
//	much: read like X   what Socket.ReadLike says
//	much send 512       bytes come to each of them
//	calm 254            so many rounds had nothing to read from sockets that bring little
//	together            what follows, up to go, happens while the loop stands still; below go stands the order
//	3 tasks NAME, 3 later NAME   tasks that run once, those of GoLater
//	then X sends 1      as soon as the first of them has had its turn
//	much leave          the other side ends
//
// The order names who had a turn, and | ends a round.
func TestOrder(t *testing.T) {
	datatest.Play(t, "testdata/order/*.txt", func(t *testing.T, script *datatest.Script) {
		o := &order{t: t, running: start(t), sockets: map[string][]*Socket{}, peers: map[string][]net.Conn{}}
		for event := range script.Events {
			if text := o.do(event); text != "" {
				script.Printf("%s", text)
			}
		}
	})
}

// An order notes who has turns. The loop writes it until done is closed.
type order struct {
	*running
	t       *testing.T
	sockets map[string][]*Socket
	peers   map[string][]net.Conn
	turns   []string // "|" ends a round
	wanted  int      // turns
	done    chan struct{}
	inRound bool
	then    func()
	begin   []func() // what happens together; nil: at once
	goOn    func()
}

func (o *order) do(event string) (came string) {
	words := strings.Fields(event)
	name, rest := words[0], strings.Join(words[1:], " ")
	switch count, err := strconv.Atoi(name); {
	case err == nil && (words[1] == "tasks" || words[1] == "later"):
		begin := o.Loop.Go
		if words[1] == "later" {
			begin = o.GoLater
		}
		for range count {
			o.wanted++
			o.begin = append(o.begin, func() { begin(func(*Task) bool { o.turn(words[2]); return false }) })
		}
	case err == nil:
		for range count {
			o.adoptNamed(rest)
		}
		o.settle()
	case name == "calm":
		count, _ := strconv.Atoi(rest)
		o.begin = append(o.begin, func() { o.calm = count })
	case name == "then":
		peer := o.peers[words[1]][0]
		o.wanted++
		o.then = func() { o.send(peer, words[3]) }
	case name == "together":
		o.goOn = o.hold(o.t)
	case name == "go":
		return o.play()
	case words[1] == "read" && words[2] == "first":
		for _, s := range o.sockets[strings.TrimSuffix(name, ":")] {
			s.ReadFirst()
		}
	case words[1] == "read":
		for _, s := range o.sockets[strings.TrimSuffix(name, ":")] {
			s.ReadLike(o.sockets[words[3]][0])
		}
	case words[1] == "send" || words[1] == "leave":
		alone := o.goOn == nil
		if alone {
			o.goOn = o.hold(o.t)
		}
		for _, peer := range o.peers[name] {
			o.wanted++
			o.begin = append(o.begin, func() {
				if words[1] == "leave" {
					_ = peer.Close()
				} else {
					o.send(peer, words[2])
				}
			})
		}
		if alone {
			o.play() // nobody asks for the order
		}
	default:
		o.t.Fatalf("no such event: %s", event)
	}
	return ""
}

func (o *order) send(peer net.Conn, bytes string) {
	count, _ := strconv.Atoi(bytes)
	if _, err := peer.Write(make([]byte, count)); err != nil {
		o.t.Error(err)
	}
}

// play has all begin that was said, and returns the turns.
func (o *order) play() string {
	o.turns, o.done, o.inRound = nil, make(chan struct{}), false
	for _, begin := range o.begin {
		begin()
	}
	o.goOn()
	waitFor(o.t, o.done, "all turns")
	o.settle()
	o.begin, o.goOn = nil, nil
	return o.told()
}

// settle returns when the round has ended and nothing is left to do.
func (o *order) settle() {
	for isBusy := true; isBusy; {
		o.flush(o.t)
		atEnd := make(chan struct{})
		o.AtEnd(func() {
			isBusy = o.hasWork()
			close(atEnd)
		})
		waitFor(o.t, atEnd, "the end of the round")
	}
}

// told returns the turns, with the number of each that come one after another.
func (o *order) told() string {
	type alike struct {
		text  string
		times int
	}
	var rounds []alike
	for round := range strings.SplitSeq(strings.TrimSuffix(strings.Join(o.turns, " "), " |"), "|") {
		var in []string
		names := strings.Fields(round)
		for from, i := 0, 0; i < len(names); i++ {
			if i+1 == len(names) || names[i+1] != names[i] {
				in = append(in, fmt.Sprintf("%d %s", i+1-from, names[i]))
				from = i + 1
			}
		}
		text := strings.Join(in, ", ")
		if last := len(rounds) - 1; last >= 0 && rounds[last].text == text {
			rounds[last].times++
		} else {
			rounds = append(rounds, alike{text, 1})
		}
	}
	var out []string
	for _, r := range rounds {
		if r.times > 1 {
			r.text = fmt.Sprintf("%d rounds of %s", r.times, r.text)
		}
		out = append(out, r.text)
	}
	return strings.Join(out, " | ")
}

// A turn is noted on the loop.
func (o *order) turn(name string) {
	if o.turns = append(o.turns, name); !o.inRound {
		o.inRound = true
		o.AtEnd(func() { o.inRound, o.turns = false, append(o.turns, "|") })
	}
	if then := o.then; then != nil {
		o.then = nil
		then()
	}
	if o.wanted--; o.wanted == 0 {
		close(o.done)
	}
}

func (o *order) adoptNamed(name string) {
	s, theirs := o.adopt(o.t, "unix", namedReceiver{o, name})
	o.sockets[name], o.peers[name] = append(o.sockets[name], s), append(o.peers[name], theirs)
}

type namedReceiver struct {
	order *order
	name  string
}

func (r namedReceiver) Received([]byte) { r.order.turn(r.name) }
func (r namedReceiver) Ended(err error) {
	if r.order.wanted > 0 { // or the loop ends
		r.order.turn(r.name + "-end")
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
