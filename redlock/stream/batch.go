package stream

import (
	"math"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// This file is what is written to a connection, and what is read from it. Both are
// batches: calls that are sent together, with one check of the master's marker behind
// them. The two steps are flush (calls in, bytes out) and handOut (bytes in, answers
// out). They neither read nor write nor wait. A link calls them (link.go).

// flush returns the queued calls with one check behind them. It returns nothing if no call
// is queued and no check is due. The next calls are queued in the memory of empty. The
// caller must send the bytes at once, because for the stream they are sent.
func (s *Stream) flush(empty []byte) (buf []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	buf, s.out = s.out, empty[:0]
	if (len(buf) > 0 || s.due) && !s.embedded {
		buf = s.appendCheck(buf, time.Now())
		s.due = false
	}
	s.unwritten = 0
	return buf
}

// appendCheck appends, with s.mu held, the check that ends a batch.
func (s *Stream) appendCheck(dst []byte, now time.Time) []byte {
	check := Call{Replies: checkReplies, check: true, sent: now, slept: s.owner.Suspended()}
	check.role = s.sole && now.Sub(s.askedInfo) < infoPause
	s.calls = append(s.calls, check)
	dst = append(dst, s.check...)
	if check.role {
		return append(dst, timeAndRole...)
	}
	s.askedInfo = now
	return append(dst, timeAndInfo...)
}

// askInfo makes every batch from now on ask INFO. If that is a change, it asks at once.
func (s *Stream) askInfo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sole {
		return
	}
	s.sole, s.due = false, true
	s.wake()
}

// answers are what a connection has received and not handed out.
type answers struct {
	*resp.Reader
	batch   []Call // the calls that the next replies belong to; empty: no byte of them is there
	missing int    // the number of their replies
	replies [][]byte
}

// handOut answers all batches that are whole.
func (s *Stream) handOut(in *answers) error {
	for {
		if whole, err := s.gather(in); !whole || err != nil {
			return err
		}
		if err := s.answerBatch(in); err != nil {
			return err
		}
	}
}

// gather matches the replies that are there to the calls of a batch. It tells whether the
// batch is whole.
func (s *Stream) gather(in *answers) (whole bool, err error) {
	if !in.Pending() {
		return false, nil
	}
	if len(in.batch) == 0 {
		in.DropLonger(s.owner.MaxReply())
		in.batch = s.batch(in.batch)
		in.missing = 0
		for i := range in.batch {
			in.missing += in.batch[i].skip + in.batch[i].Replies
		}
	}
	if len(in.batch) == 0 {
		return false, resp.ErrUnasked
	}
	if whole, err = in.Hold(in.missing); !whole {
		s.mu.Lock()
		s.arrived = time.Now()
		s.mu.Unlock()
	}
	if held, drops := in.Dropping(); drops && err == nil {
		err = s.tellTooLong(in.batch, held)
	}
	return whole, err
}

// tellTooLong tells the asker of reply n of a batch that it is too long. Its end may come much later.
func (s *Stream) tellTooLong(batch []Call, n int) error {
	at := 0
	for i := range batch {
		c := batch[i]
		if at += c.skip + c.Replies; n >= at || c.check {
			continue
		}
		batch[i].Asker = told{}
		s.mu.Lock()
		s.calls[s.head+i].Asker = told{}
		s.mu.Unlock()
		return s.contain(&c, func() { c.Asker.Answered(s, &c, nil, Judgement{}, ErrTooLong) })
	}
	return nil
}

// told stands for an asker that has got its answer before the end of the batch.
type told struct{}

func (told) Answered(*Stream, *Call, [][]byte, Judgement, error) {}

func (told) Owed(*Call) *Debt { return nil }

// answerBatch answers a whole batch. That is after its check was read. Until then nobody
// knows whether the votes of the batch count.
func (s *Stream) answerBatch(in *answers) error {
	// rule: an answer's time is not before it was read
	received := time.Now() // the whole batch
	in.replies = in.Fetched(in.replies[:0])
	j := Judgement{Votes: true, Covers: math.MaxInt64}
	if last := &in.batch[len(in.batch)-1]; last.check {
		j = s.judge(last, in.replies[in.missing-checkReplies:], received)
	}
	j.Received = received
	defect := s.answer(in.batch, in.replies, j)
	clear(in.batch)
	in.batch = in.batch[:0]
	in.Discard()
	return defect
}

// batch appends the oldest calls up to their check to dst, and leaves them in place. It
// appends nothing if no check was sent, because then none of them has an answer. Calls of
// an embedded server have no check, so batch appends one call.
func (s *Stream) batch(dst []Call) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.calls[s.head:]
	if s.embedded {
		return append(dst, waiting[:min(1, len(waiting))]...)
	}
	check := slices.IndexFunc(waiting, func(c Call) bool { return c.check })
	return append(dst, waiting[:check+1]...)
}
