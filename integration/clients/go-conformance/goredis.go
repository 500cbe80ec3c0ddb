package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

type goRedis struct{ client *redis.Client }

var (
	deleteScript = redis.NewScript(compareAndDelete)
	expireScript = redis.NewScript(compareAndExpire)
)

func openGoRedis(addr string) client {
	return newIdiom(goRedis{redis.NewClient(overTLS(redis.Options{Addr: addr}))})
}

// overTLS adds TLS and a password to the options, if the suite wants them.
func overTLS(options redis.Options) *redis.Options {
	options.TLSConfig, options.Password = tlsConfig(), os.Getenv("REDIS_PASSWORD")
	return &options
}

func openGoRedisRESP2(addr string) client {
	return newIdiom(goRedis{redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})})
}

func openGoRedisWatchdog(addr string) client {
	locks := newIdiom(goRedis{redis.NewClient(&redis.Options{Addr: addr})})
	locks.watchdog = true
	return locks
}

func (c goRedis) setNX(key, token string, ttl time.Duration) (bool, error) {
	err := c.client.SetArgs(context.Background(), key, token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func (c goRedis) get(key string) (string, error) {
	value, err := c.client.Get(context.Background(), key).Result()
	return absent(value, err, redis.Nil)
}

func (c goRedis) compareAndDelete(key, token string) (bool, error) {
	return deleteScript.Run(context.Background(), c.client, []string{key}, token).Bool()
}

func (c goRedis) compareAndExpire(key, token string, ttl time.Duration) (bool, error) {
	return expireScript.Run(context.Background(), c.client, []string{key}, token, ttl.Milliseconds()).Bool()
}
