package proxytest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A Pending is a command whose reply may come later. It is for tests in a bubble of
// package synctest.
type Pending struct {
	mu    sync.Mutex
	reply string
	after time.Duration
}

// Send starts a command. It returns when the command waits or has its reply.
func Send(ask func() (reply string)) *Pending {
	p, began := &Pending{}, time.Now()
	go func() {
		reply := ask()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reply, p.after = reply, time.Since(began)
	}()
	synctest.Wait()
	return p
}

// Now returns the reply and the time that it took. It is empty while the command waits.
func (p *Pending) Now() (reply string, after time.Duration) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reply, p.after
}

// Want fails the test unless this reply came after this time.
func (p *Pending) Want(t *testing.T, reply string, after time.Duration) {
	t.Helper()
	if got, took := p.Now(); got != reply || took != after {
		t.Errorf("%q after %v, want %q after %v", got, took, reply, after)
	}
}

// WantWaiting fails the test if the reply has come.
func (p *Pending) WantWaiting(t *testing.T) {
	t.Helper()
	if reply, _ := p.Now(); reply != "" {
		t.Errorf("%q, want it to wait", reply)
	}
}
