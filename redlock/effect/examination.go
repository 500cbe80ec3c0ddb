package effect

import (
	"bytes"
	"errors"
	"slices"

	"redlock-proxy/redlock/resp"
)

// An Examination is a client's command, or its whole transaction, run on a master
// between two looks at its keys. The client's own bytes are executed, so the reply is
// the server's own. The looks show what the command did. All of it is one MULTI/EXEC,
// so no other client comes between.
type Examination struct {
	Keys        [][]byte
	Commands    [][][]byte // each with its arguments; one, or several in a Transaction; none only looks
	Transaction bool       // the client sent MULTI itself, so its reply is EXEC's
	RESP3       bool       // the client reads RESP3; the stream itself is RESP2
	// Bounded says that nothing runs if the keys hold so much that the answer could be longer than
	// Append's limit. A script's reply is not bounded by that.
	Bounded bool
}

// A Result is one master's answer to an examination. It owns its memory.
type Result struct {
	// Reply is the client's reply, byte for byte. It is nil if the master gave none
	// or the examination had no command.
	Reply []byte
	// Before and After are the keys' images, in the order of the keys. They are nil if
	// nothing ran: the master refused, WATCH aborted, or the master could not serve.
	Before, After []Image
	// QueueingError is the error by which the master refused to queue a client's
	// command. It is an answer: Reply is this error, or EXECABORT for a transaction.
	QueueingError []byte
	// Aborted means that a watched key had changed. Reply is a null.
	Aborted bool
	// Failed means that the master could not serve, so this is no vote. If there are
	// images, they show what it did nevertheless.
	Failed bool
	// Blind means Failed, and nobody knows what ran: the master refused MULTI or cannot
	// DUMP. Without Blind, missing images mean that the master changed nothing.
	Blind bool
	// TooLarge means that nothing ran, because the keys hold too much. Reply says so.
	TooLarge bool
}

var errExamination = errors.New("the master's replies do not fit what it was asked")

// PTTL is asked next to TIME, because DUMP may take long.
var beginExamination = resp.AppendCommand(resp.AppendCommand(nil, "MULTI"), "TIME")

// errTooLarge is the reply to a command whose keys hold too much.
var errTooLarge = []byte("-ERR the lock keys hold more than limits.lock_reply lets a master answer; DEL deletes them\r\n")

// boundReplies is the number of replies to what bounds an examination.
const boundReplies = 2

// Append encodes the examination. most is the most bytes of its answer if it is Bounded. The stream
// must be in RESP2, and is in RESP2 again afterwards.
func (e *Examination) Append(dst []byte, most int64) []byte {
	if e.Bounded {
		dst = resp.AppendCommand(dst, "WATCH", brake)
		dst = resp.AppendEval(dst, BoundScript, append(slices.Clip(e.Keys), []byte(brake)), resp.Decimal(most), resp.Decimal(int64(len(e.Commands))))
	}
	if e.RESP3 {
		dst = resp.AppendCommand(dst, "HELLO", "3")
	}
	dst = append(dst, beginExamination...)
	dst = e.appendLook(dst, "PTTL")
	dst = e.appendLook(dst, "DUMP")
	for _, command := range e.Commands {
		dst = resp.AppendCommand(dst, command...)
	}
	dst = e.appendLook(dst, "DUMP")
	dst = e.appendLook(dst, "PTTL")
	dst = resp.AppendCommand(dst, "TIME")
	dst = resp.AppendCommand(dst, "EXEC")
	if e.RESP3 {
		dst = resp.AppendCommand(dst, "HELLO", "2")
	}
	return dst
}

func (e *Examination) appendLook(dst []byte, command string) []byte {
	for _, key := range e.Keys {
		dst = resp.AppendCommand(dst, []byte(command), key)
	}
	return dst
}

// look is the number of commands in each of the two looks.
func (e *Examination) look() int { return 1 + 2*len(e.Keys) }

// queued is the number of commands between MULTI and EXEC.
func (e *Examination) queued() int { return 2*e.look() + len(e.Commands) }

// Replies is the number of top-level replies to the examination.
func (e *Examination) Replies() int {
	n := 2 + e.queued()
	if e.RESP3 {
		n += 2
	}
	if e.Bounded {
		n += boundReplies
	}
	return n
}

// Parse reads a master's replies. An error means that the stream is out of step and
// must be closed.
func (e *Examination) Parse(replies [][]byte) (Result, error) {
	if len(replies) != e.Replies() {
		return Result{}, errExamination
	}
	tooLarge := false
	if e.Bounded {
		n, _ := resp.ParseInteger(replies[1])
		tooLarge, replies = n > 0, replies[boundReplies:]
	}
	otherProtocol := false
	if e.RESP3 {
		otherProtocol = resp.IsError(replies[0])
		if !otherProtocol && resp.IsError(replies[len(replies)-1]) {
			return Result{}, errExamination // it stays in RESP3
		}
		replies = replies[1:]
	}
	multi, queued, exec := replies[0], replies[1:1+e.queued()], replies[1+e.queued()]
	if !resp.IsOK(multi) {
		if !resp.IsError(multi) {
			return Result{}, errExamination
		}
		// Without MULTI each command ran on its own.
		return Result{Failed: true, Blind: !e.refused(queued)}, nil
	}
	x, err := e.parseQueued(queued)
	if err == nil {
		err = e.parseExec(&x, exec)
	}
	if x.Aborted && tooLarge {
		x = Result{Reply: errTooLarge, TooLarge: true}
	}
	x.Failed = x.Failed || otherProtocol
	return x, err
}

// refused tells whether the master certainly ran none of the client's commands.
func (e *Examination) refused(queued [][]byte) bool {
	for _, reply := range queued[e.look() : e.look()+len(e.Commands)] {
		if !resp.CannotServe(reply) {
			return false
		}
	}
	return true
}

// parseQueued reads the replies to the queued commands.
func (e *Examination) parseQueued(queued [][]byte) (x Result, err error) {
	for i, reply := range queued {
		switch {
		case bytes.Equal(reply, []byte("+QUEUED\r\n")):
		case !resp.IsError(reply):
			return x, errExamination
		case i < e.look() || i >= e.look()+len(e.Commands) || resp.CannotServe(reply):
			x.Failed = true
		case x.QueueingError == nil:
			x.QueueingError = bytes.Clone(reply)
		}
	}
	return x, nil
}

// parseExec reads EXEC's reply.
func (e *Examination) parseExec(x *Result, exec []byte) error {
	refused := x.Failed || x.QueueingError != nil
	if resp.IsError(exec) {
		switch {
		case !refused:
			x.Failed = true
		case x.Failed:
		case e.Transaction:
			x.Reply = bytes.Clone(exec)
		default:
			x.Reply = x.QueueingError
		}
		return nil
	}
	if refused {
		return errExamination // it was executed nevertheless
	}
	exec = bytes.Clone(exec)
	if resp.IsNil(exec) {
		x.Aborted, x.Reply = true, exec
		return nil
	}
	results, err := resp.Elements(exec)
	if err != nil || len(results) != e.queued() {
		return errExamination
	}
	look := e.look()
	x.setReply(results[look:len(results)-look], e.Transaction)
	return e.parseLooks(x, results[:look], results[len(results)-look:])
}

func (x *Result) setReply(results [][]byte, transaction bool) {
	for _, result := range results {
		x.Failed = x.Failed || resp.CannotServeInside(result)
	}
	if !transaction {
		if len(results) > 0 {
			x.Reply = results[0]
		}
		return
	}
	x.Reply = resp.AppendArray(nil, len(results))
	for _, result := range results {
		x.Reply = append(x.Reply, result...)
	}
}

// parseLooks reads the two looks. The first is TIME, PTTL of each key, DUMP of each
// key. The second is the same in the opposite order.
func (e *Examination) parseLooks(x *Result, first, second [][]byte) error {
	began, ok1 := parseTime(first[0])
	ended, ok2 := parseTime(second[len(second)-1])
	if !ok1 || !ok2 {
		return errExamination
	}
	keys := len(e.Keys)
	before, after := make([]Image, keys), make([]Image, keys)
	for i := range e.Keys {
		before[i], ok1 = parseImage(first[1+keys+i], first[1+i], began)
		after[i], ok2 = parseImage(second[i], second[keys+i], ended)
		if !ok1 || !ok2 {
			x.Failed, x.Blind = true, true
			return nil
		}
	}
	x.Before, x.After = before, after
	return nil
}

// parseImage reads one key's DUMP and PTTL. It returns false if the master cannot
// give them; embedded masters cannot DUMP streams.
func parseImage(dump, pttl []byte, now int64) (Image, bool) {
	i := Image{Now: now}
	var ok bool
	if i.PTTL, ok = resp.ParseInteger(pttl); !ok {
		return Image{}, false
	}
	if !resp.IsNil(dump) {
		if i.Dump, ok = resp.ParseBulk(dump); !ok || resp.IsError(dump) {
			return Image{}, false
		}
	}
	if i.Dump == nil || i.PTTL == NoKey { // the key may expire between the two commands
		i.Dump, i.PTTL = nil, NoKey
	}
	return i, true
}

// parseTime reads TIME's reply in milliseconds.
func parseTime(reply []byte) (int64, bool) {
	now, ok := resp.ParseTime(reply)
	return now.Milliseconds(), ok
}
