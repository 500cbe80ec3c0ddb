package upstream

import (
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
)

// joined is the most bytes of a piece of the client's input that are copied, to be sent in one
// write with the commands inserted before it.
const joined = 64 << 10

// A Sender sends commands. Expect says how the next commands will be answered, before Write
// sends them. There is one Write for them, unless commands were inserted before a long piece of
// input. A Conn is a Sender.
type Sender interface {
	Expect(Expectation)
	Write([]byte)
}

// A Batch is the commands that the owner has forwarded and not yet sent: a piece of the
// client's input as it came, with the proxy's own commands before it. The owner's
// goroutine calls it, and sends it before it reads more input or changes the Sender.
type Batch struct {
	input      *conn.Input
	beforeSend func(commands int)

	from, to  int         // the piece of input
	inserted  []byte      // commands before it, which are not as they came
	expected  Expectation // ordinary replies to the batch, not yet entered
	forwarded int         // commands in inserted and the piece of input that are the client's
}

// NewBatch makes an empty Batch for commands from that input. Each Send that has
// something to write first calls beforeSend with the number of the client's commands.
func NewBatch(input *conn.Input, beforeSend func(commands int)) *Batch {
	return &Batch{input: input, beforeSend: beforeSend}
}

// Forward adds the command last consumed from the input, and nothing that stands between
// it and the one before.
func (b *Batch) Forward(c Sender, cmd wire.Command, e Expectation) {
	if from := b.input.Offset() - len(cmd.Raw); b.from < b.to && b.to != from {
		b.Send(c)
	}
	b.expect(c, e)
	b.forwarded++
	if cmd.Raw[0] != '*' {
		if b.from < b.to {
			b.Send(c)
		}
		b.inserted = append(b.inserted, cmd.AsArray()...)
		return
	}
	if b.from == b.to {
		b.from = b.input.Offset() - len(cmd.Raw)
	}
	b.to = b.input.Offset()
}

// Empty tells whether nothing waits to be sent.
func (b *Batch) Empty() bool { return b.to == b.from && len(b.inserted) == 0 }

// Insert puts the proxy's own commands before the next that is forwarded. Nobody gets
// their replies.
func (b *Batch) Insert(c Sender, commands []byte, count int) {
	if b.from < b.to {
		b.Send(c)
	}
	b.expect(c, Expectation{To: ToNobody, Count: count})
	b.inserted = append(b.inserted, commands...)
}

// expect enters an expectation, ordinary ones together at the next Send.
func (b *Batch) expect(c Sender, e Expectation) {
	if e.Kind == Reply && e.To == b.expected.To {
		b.expected.Count += e.Count
		return
	}
	b.enterExpected(c)
	if e.Kind == Reply {
		b.expected = e
		return
	}
	c.Expect(e)
}

func (b *Batch) enterExpected(c Sender) {
	if b.expected.Count > 0 {
		c.Expect(b.expected)
	}
	b.expected = Expectation{}
}

// Send writes the batch, in one write if it can.
func (b *Batch) Send(c Sender) {
	if b.Empty() {
		return
	}
	b.beforeSend(b.forwarded)
	b.forwarded = 0
	b.enterExpected(c)
	commands := b.input.Between(b.from, b.to)
	b.from, b.to = 0, 0
	if len(b.inserted) > 0 {
		if len(commands) <= joined {
			b.inserted, commands = append(b.inserted, commands...), nil
		}
		c.Write(b.inserted)
		b.inserted = b.inserted[:0]
		if cap(b.inserted) > joined {
			b.inserted = nil
		}
	}
	if len(commands) > 0 {
		c.Write(commands)
	}
}
