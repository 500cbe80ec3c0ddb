package example

import (
	"testing"
	"time"
)

func TestBox(t *testing.T) {
	var b Box
	if b.Put(-1) || b.Put(11) || b.Put(2) || !b.Put(1) || !b.Put(11) {
		t.Error("not as it should be")
	}
}

func TestKind(t *testing.T) {
	if Kind(Small) != "small" || Kind(Odd) != "large" || Kind(1001) != "huge" || Kind(7) != "odd" || Kind(100) != "none" {
		t.Error("not as it should be")
	}
}

func TestValidity(t *testing.T) {
	if Validity(time.Second, time.Millisecond) != 997*time.Millisecond {
		t.Error("not as it should be")
	}
}

func TestCountDown(t *testing.T) {
	if CountDown(3) != 3 {
		t.Error("not as it should be")
	}
}

func TestNext(t *testing.T) {
	var b Box
	if b.Next() != "one" || b.Next() != "two" || b.Next() != "many" {
		t.Error("not as it should be")
	}
}

// The test misses nothing but c and the whole, and so tells the labels apart.
func TestEither(t *testing.T) {
	if Either(false, false, false) {
		t.Error("not as it should be")
	}
}

func TestMark(t *testing.T) {
	if m := NewMark("here", 7); m.Name != "here" {
		t.Error("not as it should be")
	}
}
