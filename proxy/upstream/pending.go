package upstream

import (
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// An Expectation says how one command, or several alike, will be answered.
type Expectation struct {
	Kind  Kind
	To    Destination // of the replies; confirmations go to the client in any case
	Count int         // the number of values; for Confirmations, 0: one for each subscription that exists by then

	Family wire.Family // for Confirmations: the kind of subscriptions that begin or end
	Adds   bool        // for Confirmations: subscriptions begin
	Names  []string    // for Confirmations: in order, if the owner needs the result for each

	Version wire.Version // for Switch
}

// A Kind is the meaning of the values that answer a command.
type Kind uint8

const (
	// Reply is one top-level value for each command.
	Reply Kind = iota
	// Confirmations are one value for each name whose subscription begins or ends, or
	// one error for all of them.
	Confirmations
	// Stream is one value. Unless it is an error, no values are counted after it. With a
	// Count of 0, there is no such value, and counting ends at once.
	Stream
	// Switch is one value. Unless it is an error, the upstream speaks Version after it.
	Switch
)

// A Destination is the receiver of a value from the upstream.
type Destination uint8

const (
	ToClient Destination = iota // it is passed on as it comes
	ToNobody                    // it is dropped
	ToOwner                     // Wait returns it
	unasked                     // no command asked for it, so nobody may have it
)

// pending knows the replies that are still to come. It finds, value by value, which
// command each one answers. The owner adds expectations in the order of its writes. The
// feeder reports values in the order in which they come.
//
// These are all the rules. One top-level value answers each command, or one confirmation
// for each name. A push (>) answers nothing, unless it is such a confirmation. In RESP2
// the same holds for an array that is a message, if there are subscriptions.
// Confirmations always go to the client. In a pipe, no values are counted. Any other
// value that nobody asked for shows that replies and commands are out of sync.
type pending struct {
	mu          sync.Mutex
	queue       queue
	undelivered bool       // a value was counted, and its destination does not have it yet
	waiting     bool       // the owner waits until nothing is pending
	task        *loop.Task // is unparked then
	version     wire.Version
	pipe        atomic.Bool // values are no longer counted; written under mu
	subscribed  subscriptions
	current     currentValue
}

// currentValue is the value that the feeder is inside.
type currentValue struct {
	counts       bool // it answers the first expectation
	confirmation bool
	family       wire.Family
}

func newPending(version wire.Version, task *loop.Task) *pending {
	return &pending{task: task, version: version}
}

// expect adds an expectation. The owner calls it before it writes the command.
func (p *pending) expect(e Expectation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pipe.Load() {
		return
	}
	done := p.queue.done()
	p.queue.add(e)
	if done && p.queue.done() {
		p.pipe.Store(true)
	}
}

// plain is the number of next values, apart from pushes, that are ordinary replies for
// the client. The feeder passes these on without a call of begin. It reports them with
// answered before it calls any other method.
func (p *pending) plain() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.queue.first()
	if first == nil || first.Kind != Reply || first.To != ToClient || p.pipe.Load() || p.subscribed.any() {
		return 0
	}
	return first.Count
}

// answered removes n plain replies from those pending.
func (p *pending) answered(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.undelivered = true
	p.queue.answered(n)
}

// begin gets the first bytes of a value and returns its destination. If enough is false,
// it needs more bytes. That happens only near the beginning of an unfinished value.
func (p *pending) begin(value []byte) (to Destination, enough bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = currentValue{}
	first := p.queue.first()
	if first != nil && p.queue.done() {
		p.pipe.Store(true)
	}
	if p.pipe.Load() {
		return ToClient, true
	}
	expectsName, isPush := first != nil && first.Kind == Confirmations, value[0] == '>'
	if (expectsName || p.subscribed.any()) && (isPush || value[0] == '*' && p.version == wire.RESP2) {
		name, known := wire.FirstElement(value)
		if !known || wire.IsMessage(name) {
			return ToClient, known
		}
		if family, adds, confirms := wire.ConfirmationOf(name); confirms {
			counts := expectsName && first.Family == family && first.Adds == adds
			p.current = currentValue{counts: counts, confirmation: true, family: family}
			return ToClient, true
		}
	}
	switch {
	case isPush:
		return ToClient, true
	case first == nil:
		return unasked, true
	}
	p.current.counts = true
	return first.To, true
}

// end is called when the value has ended, with its kind and its last bytes. If confirms
// is true, the value answers a command about subscriptions, and said is its meaning.
func (p *pending) end(kind byte, tail []byte) (said wire.Confirmation, confirms bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, is := p.queue.first(), p.current
	if is.confirmation {
		if is.counts && first.Count == 0 {
			first.Count = max(1, p.subscribed[is.family])
		}
		p.subscribed.confirm(is.family, tail)
	}
	if !is.counts {
		return wire.Confirmation{}, false
	}
	p.undelivered = true
	confirms = first.Kind == Confirmations
	refused := confirms && !is.confirmation
	if confirms {
		said = first.confirmation(refused)
	}
	first.Count--
	if first.Count > 0 && !refused {
		return said, confirms
	}
	switch {
	case kind == '-':
	case first.Kind == Stream:
		p.pipe.Store(true)
	case first.Kind == Switch:
		p.version = first.Version
	}
	p.queue.head++
	return said, confirms
}

// confirmation is what the next value says about the expected subscriptions.
func (e *Expectation) confirmation(refused bool) wire.Confirmation {
	c := wire.Confirmation{Family: e.Family, Adds: e.Adds, Refused: refused, Names: e.Names}
	if at := len(e.Names) - e.Count; !refused && len(e.Names) > 0 && at >= 0 && at < len(e.Names) {
		c.Names = e.Names[at : at+1]
	}
	return c
}

// delivered is called when all values that have ended are at their destinations. n of
// them are plain replies that were not reported before.
func (p *pending) delivered(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.answered(n)
	p.undelivered = false
	if p.waiting && (p.pipe.Load() || p.queue.done()) {
		p.waiting = false
		p.task.Unpark()
	}
}

// drained tells whether nothing is pending any more. If it returns false and wait is
// true, the task is unparked when nothing is pending.
func (p *pending) drained(wait bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pipe.Load() || p.queue.done() && !p.undelivered {
		return true
	}
	p.waiting = p.waiting || wait
	return false
}

// restricted tells whether the connection is in RESP2's subscribe mode.
func (p *pending) restricted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version == wire.RESP2 && !p.pipe.Load() && p.subscribed.any()
}

// listens tells whether values may come that answer no command.
func (p *pending) listens() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pipe.Load() || p.subscribed.any()
}

func (p *pending) subscriptions() [3]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.subscribed
}

// A queue holds expectations in the order in which they were added.
type queue struct {
	list []Expectation
	head int // list[head:] are pending
}

func (q *queue) first() *Expectation {
	if q.head == len(q.list) {
		return nil
	}
	return &q.list[q.head]
}

// done tells whether no more values are counted: none is expected, or the next
// expectation is a stream that begins without a reply.
func (q *queue) done() bool {
	first := q.first()
	return first == nil || first.Kind == Stream && first.Count == 0
}

// add appends e. To keep the queue short, it joins e to the last expectation if both are
// plain replies with one destination.
func (q *queue) add(e Expectation) {
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if last := &q.list[len(q.list)-1]; e.Kind == Reply && last.Kind == Reply && last.To == e.To {
		last.Count += e.Count
		return
	}
	if q.head > 64 && q.head > len(q.list)/2 {
		q.list, q.head = q.list[:copy(q.list, q.list[q.head:])], 0
	}
	q.list = append(q.list, e)
}

// answered removes n values from the first expectation.
func (q *queue) answered(n int) {
	if n == 0 {
		return
	}
	first := q.first()
	if first.Count -= n; first.Count == 0 {
		q.head++
	}
}

// subscriptions has the number of subscriptions of each family, from the last
// confirmations.
type subscriptions [3]int

func (s *subscriptions) any() bool { return *s != subscriptions{} }

// confirm takes the number of subscriptions from the end of a confirmation. Redis counts
// channels and patterns together.
func (s *subscriptions) confirm(family wire.Family, tail []byte) {
	total, ok := wire.LastInteger(tail)
	if !ok {
		return
	}
	switch family {
	case wire.FamilyChannel:
		total -= s[wire.FamilyPattern]
	case wire.FamilyPattern:
		total -= s[wire.FamilyChannel]
	}
	s[family] = max(total, 0)
}
