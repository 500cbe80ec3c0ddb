package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embeddedServer is a toy Redis inside this process, for trying the proxy out:
// real enough for the locks of common libraries, be they strings, hashes, lists
// or sets. It forgets everything when the process ends, and no safety result
// counts on it.
//
// It listens on a free loopback port rather than on an in-memory pipe, so that
// redis-cli can look into it.
type embeddedServer struct {
	name string
	mini *miniredis.Miniredis
}

// startEmbedded starts a server; its owner closes it.
func startEmbedded(name string) (*embeddedServer, error) {
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
	answers := &embeddedAnswers{
		runID:   hex.EncodeToString(id[:]),
		port:    mini.Port(),
		started: time.Now(),
		server:  mini.Server(),
		clients: map[*embeddedPeer]*embeddedClient{},
	}
	mini.Server().SetPreHook(answers.answer)
	return &embeddedServer{name: name, mini: mini}, nil
}

// named is what startEmbedded was told.
func (e *embeddedServer) named() string { return e.name }

// address is where it listens on this host, while it runs.
func (e *embeddedServer) address() string { return e.mini.Addr() }

// embeddedCloseTimeout bounds a close that a command in the server holds up: a
// script that loops for ever cannot be ended.
const embeddedCloseTimeout = time.Second

// close ends the server and its connections.
func (e *embeddedServer) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.mini.Close()
	}()
	select {
	case <-done:
	case <-time.After(embeddedCloseTimeout):
	}
}
