package loop

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// While the loop is held up, bytes come for a crowd, and at last for a socket of ReadFirst.
func TestReadFirst(t *testing.T) {
	l := start(t)
	var mu sync.Mutex
	var order []string
	heard := make(chan struct{})
	const crowd = 100
	adopt := func(name string) (*Socket, func()) {
		r := newRecorder()
		r.received = func([]byte) {
			mu.Lock()
			defer mu.Unlock()
			if order = append(order, name); len(order) == crowd+1 {
				close(heard)
			}
		}
		s, theirs := l.adopt(t, "unix", r)
		return s, func() {
			if _, err := theirs.Write([]byte("x")); err != nil {
				t.Error(err)
			}
		}
	}
	var sends []func()
	for i := range crowd {
		_, send := adopt(fmt.Sprint(i))
		sends = append(sends, send)
	}
	first, send := adopt("first")
	first.ReadFirst()
	sends = append(sends, send)
	l.flush(t)
	held, goOn := make(chan struct{}), make(chan struct{})
	l.Do(func() { close(held); <-goOn })
	waitFor(t, held, "the loop to be held up")
	for _, send := range sends {
		send()
	}
	close(goOn)
	waitFor(t, heard, "all to be read")
	mu.Lock()
	defer mu.Unlock()
	if at := slices.Index(order, "first"); at != 0 {
		t.Errorf("%d others were read before it", at)
	}
}
