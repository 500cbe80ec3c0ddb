package main

import (
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

type redigoCommands struct{ pool *redis.Pool }

var (
	redigoDelete = redis.NewScript(1, compareAndDelete)
	redigoExpire = redis.NewScript(1, compareAndExpire)
)

func redigoPool(addr string) *redis.Pool {
	return &redis.Pool{MaxIdle: 4, Dial: func() (redis.Conn, error) {
		config := tlsConfig()
		return redis.Dial("tcp", addr, redis.DialUseTLS(config != nil), redis.DialTLSConfig(config), redis.DialPassword(os.Getenv("REDIS_PASSWORD")))
	}}
}

func openRedigo(addr string) client { return newIdiom(redigoCommands{redigoPool(addr)}) }

func (c redigoCommands) setNX(key, token string, ttl time.Duration) (bool, error) {
	conn := c.pool.Get()
	defer conn.Close()
	answer, err := redis.String(conn.Do("SET", key, token, "NX", "PX", ttl.Milliseconds()))
	answer, err = absent(answer, err, redis.ErrNil)
	return answer == "OK", err
}

func (c redigoCommands) get(key string) (string, error) {
	conn := c.pool.Get()
	defer conn.Close()
	value, err := redis.String(conn.Do("GET", key))
	return absent(value, err, redis.ErrNil)
}

func (c redigoCommands) compareAndDelete(key, token string) (bool, error) {
	conn := c.pool.Get()
	defer conn.Close()
	return redis.Bool(redigoDelete.Do(conn, key, token))
}

func (c redigoCommands) compareAndExpire(key, token string, ttl time.Duration) (bool, error) {
	conn := c.pool.Get()
	defer conn.Close()
	return redis.Bool(redigoExpire.Do(conn, key, token, ttl.Milliseconds()))
}
