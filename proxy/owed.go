package proxy

import (
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/wire"
)

// A debt is what the upstream still owes for forwarded commands.
type debt struct {
	kind    debtKind
	silent  bool // the values go to nobody: CLIENT REPLY OFF, or asked by the proxy itself
	capture bool // the value goes to the session, not to the client
	family  wire.Family
	adds    bool // confirmations of SUBSCRIBE rather than UNSUBSCRIBE
	left    int  // values still owed; 0: of an UNSUBSCRIBE without names, known once it is its turn

	names []string // in a command for subscriptions, if the session wants to know what becomes of each
}

type debtKind uint8

const (
	debtReply         debtKind = iota // one top-level value each
	debtConfirmations                 // one value for each name of a SUBSCRIBE or UNSUBSCRIBE, or one error for all
	debtStream                        // one value; unless that is an error nothing is counted any more (MONITOR)
)

// A fate is what happens to a value that the upstream sends.
type fate uint8

const (
	fateClient  fate = iota // to the client, as it came
	fateNobody              // dropped
	fateSession             // kept for the session that asked
	fateUnasked             // nothing was asked, so nobody may have it
)

// owed counts what the upstream still owes and finds, value by value, what
// each one answers. The session adds debts, in the order in which it forwards;
// the copier reports values, in the order in which they come.
//
// The rules, all of them: a forwarded command owes one top-level value. A
// SUBSCRIBE or UNSUBSCRIBE owes one confirmation per name. A push (>) counts
// nowhere except as such a confirmation, and so, in RESP2, does a message that
// comes to a subscriber. Confirmations reach the client whatever CLIENT REPLY
// said. In a pipe (after MONITOR) nothing is counted. Any
// other value that nobody asked for shows that replies and commands are out of
// step.
type owed struct {
	mu          sync.Mutex
	queue       []debt
	head        int  // queue[head:] is owed
	undelivered bool // a value was counted whose bytes are not yet where they belong
	waiting     bool
	settledNow  chan struct{} // signalled when a waiting session may go on
	version     wire.Version
	pipe        atomic.Bool // written under mu
	subscribed  [3]int      // per family, as the last confirmation said
	current     currentValue
}

// currentValue is what owed knows of the value that the copier is inside.
type currentValue struct {
	counts       bool // it answers the first debt
	confirmation bool
	family       wire.Family
}

func newOwed(version wire.Version) *owed {
	return &owed{settledNow: make(chan struct{}, 1), version: version}
}

// add is called before the command is written.
func (o *owed) add(d debt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pipe.Load() {
		return
	}
	if o.head == len(o.queue) {
		o.queue, o.head = o.queue[:0], 0
	} else if last := &o.queue[len(o.queue)-1]; d.kind == debtReply && !d.capture &&
		last.kind == debtReply && !last.capture && last.silent == d.silent {
		last.left += d.left
		return
	}
	if o.head > 64 && o.head > len(o.queue)/2 {
		o.queue, o.head = o.queue[:copy(o.queue, o.queue[o.head:])], 0
	}
	o.queue = append(o.queue, d)
}

// plain tells how many of the next values, pushes left aside, are ordinary
// replies for the client. The copier passes these on without asking begin, and
// reports them with answered before it asks anything else.
func (o *owed) plain() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.first()
	if first == nil || first.kind != debtReply || first.silent || first.capture || o.pipe.Load() || o.subscribes() {
		return 0
	}
	return first.left
}

// answered takes n plain replies off what is owed.
func (o *owed) answered(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.undelivered = true
	o.settlePlain(n)
}

func (o *owed) settlePlain(n int) {
	if n == 0 {
		return
	}
	first := o.first()
	if first.left -= n; first.left == 0 {
		o.head++
	}
}

// begin is told how a value begins. More bytes are needed where enough is
// false; that is so only within the first bytes of an unfinished value.
func (o *owed) begin(p []byte) (to fate, enough bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.current = currentValue{}
	if o.pipe.Load() {
		return fateClient, true
	}
	first := o.first()
	expectsName := first != nil && first.kind == debtConfirmations
	switch {
	case p[0] == '>' && !expectsName && !o.subscribes():
		return fateClient, true
	case p[0] == '>', p[0] == '*' && o.version == wire.RESP2 && (expectsName || o.subscribes()):
		name, known := wire.FirstElement(p)
		if !known {
			return fateClient, false
		}
		if wire.IsMessage(name) {
			return fateClient, true
		}
		family, adds, confirms := wire.ConfirmationOf(name)
		if confirms {
			counts := expectsName && first.family == family && first.adds == adds
			o.current = currentValue{counts: counts, confirmation: true, family: family}
			return fateClient, true
		}
		if p[0] == '>' {
			return fateClient, true
		}
	}
	if first == nil {
		return fateUnasked, true
	}
	o.current.counts = true
	switch {
	case first.capture:
		return fateSession, true
	case first.silent:
		return fateNobody, true
	}
	return fateClient, true
}

// end is told that the value has ended, of what kind it was and, for a
// confirmation, the value's last bytes. If the value answers a command for
// subscriptions, told is what it says of them.
func (o *owed) end(kind byte, tail []byte) (told wire.Confirmation, tells bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current.confirmation {
		o.confirm(tail)
	}
	if !o.current.counts {
		return wire.Confirmation{}, false
	}
	o.undelivered = true
	first := o.first()
	if tells = first.kind == debtConfirmations; tells {
		told = first.told(!o.current.confirmation)
	}
	if first.left > 0 {
		first.left--
	}
	wholeRefused := first.kind == debtConfirmations && !o.current.confirmation
	if first.left == 0 || wholeRefused {
		if first.kind == debtStream && kind != '-' {
			o.pipe.Store(true)
		}
		o.head++
	}
	return told, tells
}

// told is what the next value says of the subscriptions that the debt is for.
func (d *debt) told(refused bool) wire.Confirmation {
	c := wire.Confirmation{Family: d.family, Adds: d.adds, Refused: refused, Names: d.names}
	if at := len(d.names) - d.left; !refused && len(d.names) > 0 && at >= 0 && at < len(d.names) {
		c.Names = d.names[at : at+1]
	}
	return c
}

// confirm takes over how many subscriptions the server says there are, and
// finds how many confirmations an UNSUBSCRIBE without names owes.
func (o *owed) confirm(tail []byte) {
	family := o.current.family
	if first := o.first(); o.current.counts && first.left == 0 {
		first.left = max(1, o.subscribed[family])
	}
	total, ok := wire.LastInteger(tail)
	if !ok {
		return
	}
	switch family {
	case wire.FamilyChannel:
		total -= o.subscribed[wire.FamilyPattern]
	case wire.FamilyPattern:
		total -= o.subscribed[wire.FamilyChannel]
	}
	o.subscribed[family] = max(total, 0)
}

// delivered is called when the bytes of all values that ended are where they
// belong. Of these, n are plain replies that were not reported before.
func (o *owed) delivered(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settlePlain(n)
	o.undelivered = false
	if o.waiting && (o.pipe.Load() || o.first() == nil) {
		o.waiting = false
		o.settledNow <- struct{}{}
	}
}

// settled tells whether nothing is owed. If something is, and wait is set,
// settledNow will be signalled once when nothing is any more; the caller then
// receives that signal before it asks again.
func (o *owed) settled(wait bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pipe.Load() || o.first() == nil && !o.undelivered {
		return true
	}
	o.waiting = o.waiting || wait
	return false
}

// becomePipe stops counting. Only while nothing is owed.
func (o *owed) becomePipe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pipe.Store(true)
}

func (o *owed) isPipe() bool { return o.pipe.Load() }

// speak says which protocol the upstream speaks from here on. Only while
// nothing is owed.
func (o *owed) speak(version wire.Version) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version = version
}

// restricted tells whether the connection is in RESP2's subscribe mode.
func (o *owed) restricted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.version == wire.RESP2 && !o.pipe.Load() && o.subscribes()
}

// listens tells whether values may come that nobody asked for.
func (o *owed) listens() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pipe.Load() || o.subscribes()
}

func (o *owed) subscribes() bool { return o.subscribed != [3]int{} }

func (o *owed) first() *debt {
	if o.head == len(o.queue) {
		return nil
	}
	return &o.queue[o.head]
}
