package upstream

import (
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
)

// joined is the most bytes of a piece of the client's input that are copied, to be sent in one
// write with the commands inserted before it.
const joined = 64 << 10

// A sender sends commands. Expect says how the next commands will be answered, before Write
// sends them. There is one Write for them, unless commands were inserted before a long piece of
// input. A Member is a sender.
type sender interface {
	Expect(Expectation)
	Write([]byte)
}

// A Batch is the commands that the owner has forwarded and not yet sent: a piece of the
// client's input as it came, with the proxy's own commands before it. The owner sends it before it
// reads more input, and before its member opens or joins another connection.
type Batch struct {
	to         sender
	input      *conn.Input
	beforeSend func(commands int)

	from, until int         // the piece of input
	inserted    []byte      // commands before it, which are not as they came
	expected    Expectation // ordinary replies to the batch, not yet entered
	forwarded   int         // commands in inserted and the piece of input that are the client's
}

// NewBatch makes an empty Batch for commands from that input. Each Send that has
// something to write first calls beforeSend with the number of the client's commands.
func NewBatch(to *Member, input *conn.Input, beforeSend func(commands int)) *Batch {
	return &Batch{to: to, input: input, beforeSend: beforeSend}
}

// Forward adds the command last consumed from the input, and nothing that stands between it and the
// one before. What cannot go in one write with it is sent before it is expected: on a shared connection
// a turn that enters before its command may get the reply to another member's.
func (b *Batch) Forward(cmd wire.Command, e Expectation) {
	from := b.input.Offset() - len(cmd.Raw)
	isInline := cmd.Raw[0] != '*'
	if b.from < b.until && (isInline || b.until != from) {
		b.Send()
	}
	b.expect(e)
	b.forwarded++
	if isInline {
		b.inserted = append(b.inserted, cmd.AsArray()...)
		return
	}
	if b.from == b.until {
		b.from = from
	}
	b.until = b.input.Offset()
}

// Empty tells whether nothing waits to be sent.
func (b *Batch) Empty() bool { return b.until == b.from && len(b.inserted) == 0 }

// Insert puts the proxy's own commands before the next that is forwarded.
func (b *Batch) Insert(commands []byte, e Expectation) {
	if b.from < b.until {
		b.Send()
	}
	b.expect(e)
	b.inserted = append(b.inserted, commands...)
}

// expect enters an expectation, ordinary ones together at the next Send.
func (b *Batch) expect(e Expectation) {
	if e.Kind == Reply && e.To == b.expected.To {
		b.expected.Count += e.Count
		return
	}
	b.enterExpected()
	if e.Kind == Reply {
		b.expected = e
		return
	}
	b.to.Expect(e)
}

func (b *Batch) enterExpected() {
	if b.expected.Count > 0 {
		b.to.Expect(b.expected)
	}
	b.expected = Expectation{}
}

// Send writes the batch, in one write if it can.
func (b *Batch) Send() {
	if b.Empty() {
		return
	}
	b.beforeSend(b.forwarded)
	b.forwarded = 0
	b.enterExpected()
	commands := b.input.Between(b.from, b.until)
	b.from, b.until = 0, 0
	if len(b.inserted) > 0 {
		if len(commands) <= joined {
			b.inserted, commands = append(b.inserted, commands...), nil
		}
		b.to.Write(b.inserted)
		b.inserted = b.inserted[:0]
		if cap(b.inserted) > joined {
			b.inserted = nil
		}
	}
	if len(commands) > 0 {
		b.to.Write(commands)
	}
}
