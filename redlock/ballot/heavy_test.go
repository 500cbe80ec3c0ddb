package ballot

import (
	"bytes"
	"testing"

	"redlock-proxy/redlock/resp"
)

// A question is large by its own bytes, or by the last answer to one like it.
func TestLargeQuestions(t *testing.T) {
	h := newHeavies()
	large := resp.AppendBulk(nil, bytes.Repeat([]byte("x"), heavy))
	get := resp.AppendCommand(nil, "GET", "lock:a")
	about := h.subject(0, get)
	if h.are(about, get) {
		t.Error("an unknown question is large")
	}
	if !h.are(about, large) || h.are(about, large[:heavy]) {
		t.Error("the bytes do not decide")
	}
	for _, answer := range [][][]byte{{large}, {[]byte(":1\r\n"), large}, {large[:heavy/2], large[:heavy/2], []byte("+")}} {
		h.note(about, answer)
		if !h.are(about, get) {
			t.Errorf("after an answer of %d replies it is not large", len(answer))
		}
		for _, other := range []uint64{h.subject(1, get), h.subject(0, resp.AppendCommand(nil, "GET", "lock:b"))} {
			if h.are(other, get) {
				t.Error("another one is large, too")
			}
		}
		h.note(h.subject(0, resp.AppendCommand(nil, "GET", "lock:b")), [][]byte{[]byte(":1\r\n")})
		if !h.are(about, get) {
			t.Error("an answer to another one counts")
		}
		h.note(about, [][]byte{large[:heavy]})
		if h.are(about, get) {
			t.Error("it is large after a short answer")
		}
	}
}

// What was dropped was large.
func TestADroppedAnswerIsLarge(t *testing.T) {
	r := resp.NewReader(bytes.NewReader(resp.AppendBulk(nil, "longer than the limit")), 16, 8)
	r.DropLonger(4)
	dropped, err := r.Next(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	h := newHeavies()
	get := resp.AppendCommand(nil, "GET", "lock:a")
	about := h.subject(0, get)
	if h.note(about, dropped); !h.are(about, get) {
		t.Error("it is not")
	}
	if one, own := ReadAs(dropped[0], true), OwnAs(dropped[0], true); one != ErrTooLong || own != ErrTooLong {
		t.Errorf("it is read as %v and %v", one, own)
	}
}
