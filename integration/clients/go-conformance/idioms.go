package main

import (
	"crypto/rand"
	"errors"
	"time"
)

const (
	compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	compareAndExpire = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
)

// commands are the five that hand-written lock code sends, each through the
// client library's own means.
type commands interface {
	setNX(key, token string, ttl time.Duration) (bool, error)
	get(key string) (string, error) // "": absent
	compareAndDelete(key, token string) (bool, error)
	compareAndExpire(key, token string, ttl time.Duration) (bool, error)
}

// idiom is lock code as applications have it without a library. With a
// watchdog, a goroutine renews each lock until it is given back.
type idiom struct {
	commands
	watchdog bool
	tokens   map[string]string
	watched  map[string]chan struct{} // closed to end the goroutine
}

func newIdiom(c commands) *idiom {
	return &idiom{commands: c, tokens: map[string]string{}, watched: map[string]chan struct{}{}}
}

func (c *idiom) keys(name string) []string { return []string{name} }

func (c *idiom) acquire(name string, ttl time.Duration) (bool, error) {
	token := rand.Text()
	ok, err := c.setNX(name, token, ttl)
	if ok {
		c.tokens[name] = token
		if c.watchdog {
			c.watched[name] = make(chan struct{})
			go c.renew(name, token, ttl, c.watched[name])
		}
	}
	return ok, err
}

func (c *idiom) renew(name, token string, ttl time.Duration, end <-chan struct{}) {
	for ticks := time.NewTicker(ttl / 3); ; {
		select {
		case <-end:
			ticks.Stop()
			return
		case <-ticks.C:
			if ok, err := c.compareAndExpire(name, token, ttl); err == nil && !ok {
				return
			}
		}
	}
}

func (c *idiom) wait(name string, ttl, limit time.Duration) (bool, error) {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if ok, err := c.acquire(name, ttl); ok || err != nil || time.Now().After(end) {
			return ok, err
		}
	}
}

func (c *idiom) extend(name string, ttl time.Duration) (bool, error) {
	if c.watchdog {
		return false, errUnsupported
	}
	return c.compareAndExpire(name, c.tokens[name], ttl)
}

func (c *idiom) release(name string) (bool, error) {
	if end := c.watched[name]; end != nil {
		close(end)
		delete(c.watched, name)
	}
	return c.compareAndDelete(name, c.tokens[name])
}

func (c *idiom) steal(name string) (bool, error) {
	return c.compareAndDelete(name, "a-token-that-nobody-has")
}

func (c *idiom) held(name string) (bool, error) {
	owner, err := c.get(name)
	return owner != "", err
}

func (c *idiom) mine(name string) (bool, error) {
	owner, err := c.get(name)
	return owner != "" && owner == c.tokens[name], err
}

// absent turns the library's word for nil into an empty value.
func absent(value string, err, null error) (string, error) {
	if errors.Is(err, null) {
		return "", nil
	}
	return value, err
}
