package main

import "sync"

// A sharer is a client of many goroutines that send all their commands over one connection, as
// ioredis, node-redis, Lettuce, StackExchange.Redis and rueidis do.
type sharer struct {
	conn *leanClient
	mu   sync.Mutex         // of writing
	next chan chan<- answer // those who wait, in the order of their commands
}

// An answer is a reply, or why there is none.
type answer struct {
	text string
	err  error
}

func newSharer(conn *leanClient) *sharer {
	s := &sharer{conn: conn, next: make(chan chan<- answer, 1<<10)}
	go s.readAll()
	return s
}

// readAll ends with the connection.
func (s *sharer) readAll() {
	for waits := range s.next {
		reply, err := s.conn.read()
		waits <- answer{string(reply), err}
	}
}

func (s *sharer) do(mine chan answer, args ...string) (string, error) {
	s.mu.Lock()
	s.conn.queue(args...)
	err := s.conn.flush()
	s.next <- mine
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	a := <-mine
	return a.text, a.err
}

// A sharingLocker is one goroutine's lockClient on a shared connection.
type sharingLocker struct {
	*sharer
	mine  chan answer
	token string
}

func (l *sharingLocker) acquire(key string) (bool, error) {
	l.token = nextToken()
	reply, err := l.do(l.mine, "SET", key, l.token, "NX", "PX", ttlText)
	return reply == "OK", err
}

func (l *sharingLocker) release(key string) error {
	reply, err := l.do(l.mine, "EVALSHA", scriptSHA(compareAndDelete), "1", key, l.token)
	if err == nil && reply != "1" {
		err = errNotReleased
	}
	return err
}
