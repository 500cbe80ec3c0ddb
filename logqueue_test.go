package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A gate is a writer that takes nothing while it is shut.
type gate struct {
	shut sync.Mutex
	mu   sync.Mutex
	got  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	g.shut.Lock()
	defer g.shut.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(p)
}

func (g *gate) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.String()
}

func TestLinesComeInOrder(t *testing.T) {
	g := &gate{}
	q := newLogQueue(g, func(lines int) { t.Errorf("%d lines were dropped", lines) })
	want := ""
	for i := range 10_000 {
		line := fmt.Sprintln("line", i)
		want += line
		if n, err := q.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	q.Close()
	if g.text() != want {
		t.Errorf("%d bytes came, not the %d that were written in their order", len(g.text()), len(want))
	}
}

// While nobody reads, Write does not wait. The number of dropped lines is logged afterwards.
func TestAStalledReaderHoldsNobodyUp(t *testing.T) {
	g := &gate{}
	g.shut.Lock()
	told := make(chan int, 1)
	var q *logQueue
	q = newLogQueue(g, func(lines int) {
		_, _ = q.Write([]byte("some were dropped\n"))
		told <- lines
	})
	line := []byte(strings.Repeat("x", 1023) + "\n")
	const written = 3 * mostUnread / 1024
	for range written {
		_, _ = q.Write(line)
	}
	g.shut.Unlock()
	lost := <-told
	q.Close()
	kept := strings.Count(g.text(), string(line))
	if lost == 0 || kept+lost != written {
		t.Errorf("%d lines of %d came and %d were dropped", kept, written, lost)
	}
	if !strings.HasSuffix(g.text(), "some were dropped\n") {
		t.Error("the last line is missing")
	}
}

func TestCloseDoesNotWaitForAStalledReader(t *testing.T) {
	g := &gate{}
	g.shut.Lock()
	q := newLogQueue(g, func(int) {})
	_, _ = q.Write([]byte("a line\n"))
	q.Close() // or the test does not end
	g.shut.Unlock()
	<-q.done
	if g.text() != "a line\n" {
		t.Errorf("%q was written", g.text())
	}
}
