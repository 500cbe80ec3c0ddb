package redlock

import (
	"bytes"
	"errors"

	"redlock-proxy/redlock/resp"
)

// An examination is a client's command, or its whole transaction, run on a
// master between two looks at its keys. The client's own bytes are executed,
// so the reply is the real server's; the looks tell what it did. All of it is
// one MULTI/EXEC, so nobody else comes between.
type examination struct {
	keys        [][]byte
	commands    [][][]byte // arguments of each; one, unless transaction; none: only look
	transaction bool       // the client said MULTI itself: its reply is that of EXEC
	resp3       bool       // the client reads RESP3; the stream itself is RESP2
}

// examined is what one master made of an examination. It owns its memory.
type examined struct {
	// reply is the client's reply, byte for byte; nil if the master gave none,
	// or there was no command.
	reply []byte
	// before and after are the keys' images, in the order of the keys; nil if
	// nothing was run: a refusal, an abort by WATCH, or a master that cannot.
	before, after []image
	// queueingError is the master's refusal to queue a client's command. It is
	// an answer: reply has it, or, for a transaction, EXEC's EXECABORT.
	queueingError []byte
	// aborted: a watched key had changed, and reply is a null.
	aborted bool
	// failed: the master could not serve, and this is no vote. The images, if
	// there are any, tell what it did nevertheless.
	failed bool
	// blind: failed, and what was run, if anything, is not known, because the
	// master refused MULTI or cannot DUMP. Otherwise no images mean no effect.
	blind bool
}

var errExamination = errors.New("the master's replies do not fit what it was asked")

// PTTL stands beside TIME; DUMP may take long.
var beginExamination = resp.AppendCommand(resp.AppendCommand(nil, "MULTI"), "TIME")

// append encodes the examination. The stream must be in RESP2, and is so
// again after it.
func (e *examination) append(dst []byte) []byte {
	if e.resp3 {
		dst = resp.AppendCommand(dst, "HELLO", "3")
	}
	dst = append(dst, beginExamination...)
	dst = e.appendLook(dst, "PTTL")
	dst = e.appendLook(dst, "DUMP")
	for _, command := range e.commands {
		dst = resp.AppendCommand(dst, command...)
	}
	dst = e.appendLook(dst, "DUMP")
	dst = e.appendLook(dst, "PTTL")
	dst = resp.AppendCommand(dst, "TIME")
	dst = resp.AppendCommand(dst, "EXEC")
	if e.resp3 {
		dst = resp.AppendCommand(dst, "HELLO", "2")
	}
	return dst
}

func (e *examination) appendLook(dst []byte, command string) []byte {
	for _, key := range e.keys {
		dst = resp.AppendCommand(dst, []byte(command), key)
	}
	return dst
}

// look is how many commands each of the two looks has.
func (e *examination) look() int { return 1 + 2*len(e.keys) }

// queued is how many commands are queued.
func (e *examination) queued() int { return 2*e.look() + len(e.commands) }

// replies is how many top-level replies the examination makes.
func (e *examination) replies() int {
	n := 2 + e.queued()
	if e.resp3 {
		n += 2
	}
	return n
}

// parse reads a master's replies. An error means that the stream is out of
// step and must not be used any more.
func (e *examination) parse(replies [][]byte) (examined, error) {
	if len(replies) != e.replies() {
		return examined{}, errExamination
	}
	otherProtocol := false
	if e.resp3 {
		otherProtocol = resp.IsError(replies[0])
		if !otherProtocol && resp.IsError(replies[len(replies)-1]) {
			return examined{}, errExamination // it stays in RESP3
		}
		replies = replies[1 : len(replies)-1]
	}
	multi, queued, exec := replies[0], replies[1:1+e.queued()], replies[1+e.queued()]
	if !resp.IsOK(multi) {
		if !resp.IsError(multi) {
			return examined{}, errExamination
		}
		// Each command was then taken by itself.
		return examined{failed: true, blind: !e.refused(queued)}, nil
	}
	x, err := e.parseQueued(queued)
	if err == nil {
		err = e.parseExec(&x, exec)
	}
	x.failed = x.failed || otherProtocol
	return x, err
}

// refused tells whether the master certainly ran none of the client's commands.
func (e *examination) refused(queued [][]byte) bool {
	for _, reply := range queued[e.look() : e.look()+len(e.commands)] {
		if !resp.CannotServe(reply) {
			return false
		}
	}
	return true
}

// parseQueued reads the answers to what was queued.
func (e *examination) parseQueued(queued [][]byte) (x examined, err error) {
	for i, reply := range queued {
		switch {
		case bytes.Equal(reply, []byte("+QUEUED\r\n")):
		case !resp.IsError(reply):
			return x, errExamination
		case i < e.look() || i >= e.look()+len(e.commands) || resp.CannotServe(reply):
			x.failed = true
		case x.queueingError == nil:
			x.queueingError = bytes.Clone(reply)
		}
	}
	return x, nil
}

// parseExec reads EXEC's reply to what was queued.
func (e *examination) parseExec(x *examined, exec []byte) error {
	refused := x.failed || x.queueingError != nil
	if resp.IsError(exec) {
		switch {
		case !refused:
			x.failed = true
		case x.failed:
		case e.transaction:
			x.reply = bytes.Clone(exec)
		default:
			x.reply = x.queueingError
		}
		return nil
	}
	if refused {
		return errExamination // it was executed nevertheless
	}
	exec = bytes.Clone(exec)
	if resp.IsNil(exec) {
		x.aborted, x.reply = true, exec
		return nil
	}
	results, err := resp.Elements(exec)
	if err != nil || len(results) != e.queued() {
		return errExamination
	}
	look := e.look()
	x.setReply(results[look:len(results)-look], e.transaction)
	return e.parseLooks(x, results[:look], results[len(results)-look:])
}

func (x *examined) setReply(results [][]byte, transaction bool) {
	for _, result := range results {
		x.failed = x.failed || resp.CannotServeInside(result)
	}
	if !transaction {
		if len(results) > 0 {
			x.reply = results[0]
		}
		return
	}
	x.reply = resp.AppendArray(nil, len(results))
	for _, result := range results {
		x.reply = append(x.reply, result...)
	}
}

// parseLooks reads the two looks: TIME, PTTL of each key, DUMP of each key,
// and the same in the opposite order.
func (e *examination) parseLooks(x *examined, first, second [][]byte) error {
	began, ok1 := parseTime(first[0])
	ended, ok2 := parseTime(second[len(second)-1])
	if !ok1 || !ok2 {
		return errExamination
	}
	keys := len(e.keys)
	before, after := make([]image, keys), make([]image, keys)
	for i := range e.keys {
		before[i], ok1 = parseImage(first[1+keys+i], first[1+i], began)
		after[i], ok2 = parseImage(second[i], second[keys+i], ended)
		if !ok1 || !ok2 {
			x.failed, x.blind = true, true
			return nil
		}
	}
	x.before, x.after = before, after
	return nil
}

// parseImage reads one key's DUMP and PTTL; false if the master has none to
// give, as embedded ones for streams.
func parseImage(dump, pttl []byte, now int64) (image, bool) {
	i := image{now: now}
	var ok bool
	if i.pttl, ok = resp.ParseInteger(pttl); !ok {
		return image{}, false
	}
	if !resp.IsNil(dump) {
		if i.dump, ok = resp.ParseBulk(dump); !ok || resp.IsError(dump) {
			return image{}, false
		}
	}
	if i.dump == nil || i.pttl == noKey { // it may expire between the two
		i.dump, i.pttl = nil, noKey
	}
	return i, true
}

// parseTime reads TIME's reply in milliseconds.
func parseTime(reply []byte) (int64, bool) {
	now, ok := resp.ParseTime(reply)
	return now.Milliseconds(), ok
}
