package mend

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/lane"
)

// No more than a number of keys are mended at a time, and none after Close.
func TestMendingIsBounded(t *testing.T) {
	m := &Mender{keys: map[lane.Key]bool{}}
	for n := range maxMended {
		m.keys[lane.Key{Name: strconv.Itoa(n)}] = true
	}
	if m.Mend(0, "one more"); len(m.keys) > maxMended {
		t.Error("one key more is mended")
	}
	clear(m.keys)
	m.Close()
	if m.Mend(0, "k"); len(m.keys) > 0 {
		t.Error("a key is mended after Close")
	}
}

func TestWhatALookShows(t *testing.T) {
	e := &effect.Examination{Keys: [][]byte{[]byte("k")}}
	const queued = "+OK +QUEUED +QUEUED +QUEUED +QUEUED +QUEUED +QUEUED "
	for replies, want := range map[string]error{
		queued + "*-1":                ballot.ErrUnable,
		queued + "-EXECABORT":         ballot.ErrUnable,
		strings.Repeat("-NOPERM ", 8): ballot.ErrUnable,
	} {
		if _, err := imageIn(e.Parse(repliesOf(replies))); err != want {
			t.Errorf("%s: %v", replies, err)
		}
	}
	if _, err := imageIn(e.Parse(repliesOf("+OK"))); err == nil || errors.Is(err, ballot.ErrUnable) {
		t.Errorf("out of step: %v", err)
	}
}

func repliesOf(words string) (replies [][]byte) {
	for word := range strings.FieldsSeq(words) {
		replies = append(replies, []byte(word+"\r\n"))
	}
	return replies
}
