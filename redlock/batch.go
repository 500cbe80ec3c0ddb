package redlock

import (
	"net"
	"runtime"
	"time"
)

// A stream's connection, as its writer and its reader see it: batches of
// questions, each with the check of the master's marker behind it.

// write takes what is queued and writes it in one piece, with the check of the
// master's marker behind it, until the connection ends or the stream stops. It
// owns conn's writing side.
func (s *stream) write(conn net.Conn, stop <-chan struct{}) error {
	var buf []byte
	for {
		s.mu.Lock()
		buf, s.out = s.out, buf[:0]
		if (len(buf) > 0 || s.due) && !s.master.embedded() {
			buf = append(buf, checkQuestion...)
			s.calls = append(s.calls, call{replies: checkReplies, check: true, sent: time.Now()})
			s.due = false
		}
		s.unwritten = 0
		s.mu.Unlock()
		if len(buf) == 0 {
			select {
			case <-s.wake:
				// Whoever else is about to ask comes into the same batch. Where
				// nobody is, this costs nothing.
				runtime.Gosched()
				continue
			case <-stop:
				return nil
			}
		}
		conn.SetWriteDeadline(time.Now().Add(s.master.stall()))
		if _, err := conn.Write(buf); err != nil {
			return err
		}
		if cap(buf) > maxIdleBuffer {
			buf = nil
		}
	}
}

// maxIdleBuffer is what a stream's buffers may keep when they are not in use.
const maxIdleBuffer = 256 << 10

// read matches replies to calls until the connection ends. A batch is answered
// when its check was read: until then nobody knows whether its votes count.
func (s *stream) read(r *replyReader) error {
	var batch []call
	var replies [][]byte
	for {
		first, err := r.wait()
		if err != nil {
			return err
		}
		if !first {
			continue
		}
		c, ok := s.next(len(batch))
		if !ok {
			return errReplyUnasked
		}
		if err := r.more(c.skip + c.replies); err != nil {
			return err
		}
		batch = append(batch, c)
		if !c.check && !s.master.embedded() {
			continue
		}
		replies = r.held(replies[:0])
		st := standing{state: Certified, longest: forEver}
		if c.check {
			st = s.judge(replies[len(replies)-checkReplies:], c.sent, time.Now())
		}
		s.answer(batch, replies, st)
		clear(batch)
		batch = batch[:0]
		r.done()
	}
}
