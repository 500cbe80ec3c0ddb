package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Server is one embedded server. It runs from Start to Close.
type Server struct {
	name    string
	mini    *miniredis.Miniredis
	answers *answers
}

// Start starts a server. name is for messages to people. The caller must close the
// server.
func Start(name string) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	// Without this, TTLs do not pass. With it, miniredis reads the clock and walks
	// over all keys at each command. So a lock never ends early. An embedded server
	// can afford the cost.
	mini.ClockTTL(true)
	if err := mini.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the %s server: %w", name, err)
	}
	var id [20]byte
	rand.Read(id[:])
	answers := &answers{info: infoOf(hex.EncodeToString(id[:]), mini.Port()), server: mini.Server(), inMulti: map[*peer]bool{}}
	mini.Server().SetPreHook(answers.answer)
	return &Server{name: name, mini: mini, answers: answers}, nil
}

// Name returns the name that was given to Start.
func (e *Server) Name() string { return e.name }

// Address returns the address, host:port, on which the server listens while it runs.
func (e *Server) Address() string { return e.mini.Addr() }

// closeTimeout bounds Close. A running command delays Close, and a script that loops
// for ever cannot be stopped.
const closeTimeout = time.Second

// Close stops the server and closes its connections. It returns within a second even if
// a command goes on running.
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
