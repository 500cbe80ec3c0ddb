package upstream

import "redlock-proxy/proxy/wire"

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

// A Kind is the meaning of the values that answer a command. Only a member that has its connection
// for itself may expect others than Reply.
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
)

// A turn is the values that answer commands of one member.
type turn struct {
	Expectation
	of *Member // nil: there is no turn
}

// confirmation is what the next value says about the expected subscriptions.
func (t *turn) confirmation() wire.Confirmation {
	c := wire.Confirmation{Family: t.Family, Adds: t.Adds, Names: t.Names}
	if at := len(t.Names) - t.Count; at >= 0 && at < len(t.Names) {
		c.Names = t.Names[at : at+1]
	}
	return c
}

// A queue holds turns in the order of the commands.
type queue struct {
	list []turn
	head int // list[head:] have not begun
}

func (q *queue) waiting() []turn { return q.list[q.head:] }

// add appends a turn. To keep the queue short, it joins it to the last one if both are plain
// replies for the same.
func (q *queue) add(of *Member, e *Expectation) {
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if last := &q.list[len(q.list)-1]; e.Kind == Reply && last.Kind == Reply && last.of == of && last.To == e.To {
		last.Count += e.Count
		return
	}
	if q.head > 64 && q.head > len(q.list)/2 {
		left := copy(q.list, q.list[q.head:])
		clear(q.list[left:])
		q.list, q.head = q.list[:left], 0
	}
	q.list = append(q.list, turn{*e, of})
}

// take removes the first turn, if there is one.
func (q *queue) take() (first turn) {
	if q.head < len(q.list) {
		first, q.list[q.head] = q.list[q.head], turn{}
		q.head++
	}
	return first
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
