package upstream

import (
	"fmt"
	"testing"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
)

// countingSender counts the replies that are expected for each write.
type countingSender struct {
	expected []Expectation
	writes   []string
}

func (s *countingSender) Expect(e Expectation) { s.expected = append(s.expected, e) }

func (s *countingSender) Write(p []byte) {
	s.writes = append(s.writes, fmt.Sprintf("%q for %v", p, s.replies()))
	s.expected = s.expected[:0]
}

// replies has a letter for each expected reply: that of its destination.
func (s *countingSender) replies() (all string) {
	for _, e := range s.expected {
		for range e.Count {
			all += []string{ToClient: "C", ToNobody: "N", ToOwner: "O"}[e.To]
		}
	}
	return all
}

// What is expected enters with the write that has the command, not with one before it: on a shared
// connection another member's commands may come between two writes.
func TestEachWriteIsExpectedWithItsOwnCommands(t *testing.T) {
	const a, b = "*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n"
	client := func(n int) Expectation { return Expectation{Count: n} }
	for _, row := range []struct {
		name, input string
		each        func(b *Batch, n int, cmd wire.Command)
		want        []string
	}{
		{"one piece", a + b, func(b *Batch, _ int, cmd wire.Command) { b.Forward(cmd, client(1)) }, []string{fmt.Sprintf("%q for CC", a+b)}},
		{"an inline command before an array", "a\r\n" + b, func(b *Batch, _ int, cmd wire.Command) { b.Forward(cmd, client(1)) },
			[]string{fmt.Sprintf("%q for CC", a+b)}},
		{"an inline command after an array", a + "b\r\n" + a, func(b *Batch, _ int, cmd wire.Command) { b.Forward(cmd, client(1)) },
			[]string{fmt.Sprintf("%q for C", a), fmt.Sprintf("%q for CC", b+a)}},
		{"an inline command after an array, for others", a + "b\r\n", func(b *Batch, n int, cmd wire.Command) {
			b.Forward(cmd, Expectation{Count: 1, To: Destination(n)})
		}, []string{fmt.Sprintf("%q for C", a), fmt.Sprintf("%q for N", b)}},
		{"a command of the proxy's after an array", a + b, func(batch *Batch, n int, cmd wire.Command) {
			if n == 1 {
				batch.Insert([]byte("inserted"), Expectation{Count: 1, To: ToNobody})
			}
			batch.Forward(cmd, client(1))
		}, []string{fmt.Sprintf("%q for C", a), fmt.Sprintf("%q for NC", "inserted"+b)}},
		{"one that was not forwarded between two", a + b + a, func(b *Batch, n int, cmd wire.Command) {
			if n != 1 {
				b.Forward(cmd, client(1))
			}
		}, []string{fmt.Sprintf("%q for C", a), fmt.Sprintf("%q for C", a)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := conn.NewInput(conn.NewBudget(func() int64 { return 1 << 20 }))
			in.SetLimit(1 << 20)
			in.Received([]byte(row.input))
			if err := in.Fill(); err != nil {
				t.Fatal(err)
			}
			to := &countingSender{}
			batch := &Batch{to: to, input: in, beforeSend: func(int) {}}
			decoder := wire.NewDecoder(wire.Limits{Bulk: 1 << 10, Multibulk: 10, Inline: 1 << 10, LoginMultibulk: 10, LoginBulk: 1 << 10})
			for n := 0; len(in.Unread()) > 0; n++ {
				cmd, length, ok, _, err := decoder.Next(in.Unread())
				if !ok || err != nil {
					t.Fatalf("%q is no command: %v", in.Unread(), err)
				}
				in.Consume(length)
				row.each(batch, n, cmd)
			}
			batch.Send()
			if fmt.Sprint(to.writes) != fmt.Sprint(row.want) {
				t.Errorf("written\n%q\nwanted\n%q", to.writes, row.want)
			}
		})
	}
}
