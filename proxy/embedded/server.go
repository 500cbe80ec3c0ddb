package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// A Server is one toy Redis, from Start to Close.
type Server struct {
	name string
	mini *miniredis.Miniredis
}

// Start starts a server under a name for people; its owner closes it.
func Start(name string) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	// Without this a TTL stands still. The clock is looked at with each
	// command, so a lock never ends early; the price is a walk over all keys
	// with each command, which a toy can afford.
	mini.ClockTTL(true)
	if err := mini.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the %s server: %w", name, err)
	}
	var id [20]byte
	rand.Read(id[:])
	answers := &answers{
		runID:   hex.EncodeToString(id[:]),
		port:    mini.Port(),
		started: time.Now(),
		server:  mini.Server(),
		clients: map[*peer]*clientState{},
	}
	mini.Server().SetPreHook(answers.answer)
	return &Server{name: name, mini: mini}, nil
}

// Name is what Start was told.
func (e *Server) Name() string { return e.name }

// Address is where it listens on this host, while it runs.
func (e *Server) Address() string { return e.mini.Addr() }

// closeTimeout bounds a close that a command in the server holds up: a
// script that loops for ever cannot be ended.
const closeTimeout = time.Second

// Close ends the server and its connections.
func (e *Server) Close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.mini.Close()
	}()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
}
