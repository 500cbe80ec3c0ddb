package main

import (
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
)

type redigoClient struct {
	arguments
	first, second redis.Conn
}

func openRedigo(args arguments) client {
	return &redigoClient{args, dialRedigo(args), dialRedigo(args)}
}

func dialRedigo(args arguments) redis.Conn {
	options := []redis.DialOption{redis.DialReadTimeout(20 * time.Second)}
	if args.password != "" {
		options = append(options, redis.DialPassword(args.password), redis.DialDatabase(args.db), redis.DialClientName("handshake"))
	}
	return must(redis.Dial("tcp", args.addr, options...))
}

func (c *redigoClient) ordinary() {
	value, count := "h:"+c.name+":value", "h:"+c.name+":count"
	step("set", yes(must(redis.String(c.first.Do("SET", value, "one"))) == "OK"))
	step("get", must(redis.String(c.first.Do("GET", value))))
	step("incr", must(redis.Int(c.first.Do("INCR", count))))
	check(c.first.Send("INCRBY", count, 10))
	check(c.first.Send("INCR", count))
	check(c.first.Send("GET", count))
	check(c.first.Flush())
	step("pipeline", must(redis.Int(c.first.Receive())), must(redis.Int(c.first.Receive())), must(redis.Int(c.first.Receive())))
	check(c.first.Send("MULTI"))
	check(c.first.Send("INCR", count))
	check(c.first.Send("GET", count))
	replies := must(redis.Values(c.first.Do("EXEC")))
	step("multi", must(redis.Int(replies[0], nil)), must(redis.Int(replies[1], nil)))
}

func (c *redigoClient) messages() {
	channel := "h:" + c.name + ":channel"
	listener := redis.PubSubConn{Conn: dialRedigo(c.arguments)}
	defer listener.Close()
	check(listener.Subscribe(channel))
	step("subscribed", yes(listener.Receive().(redis.Subscription).Count == 1))
	must(c.first.Do("PUBLISH", channel, "hello"))
	step("message", string(listener.Receive().(redis.Message).Data))
	check(listener.Unsubscribe(channel))
	step("unsubscribed", yes(listener.Receive().(redis.Subscription).Count == 0))
}

func (c *redigoClient) locks() {
	key := "lock:" + c.name
	lock := func(conn redis.Conn, key, token string) string {
		reply, err := redis.String(conn.Do("SET", key, token, "NX", "PX", 60000))
		if !errors.Is(err, redis.ErrNil) {
			check(err)
		}
		return yes(reply == "OK")
	}
	release := redis.NewScript(1, releaseScript)
	step("lock", lock(c.first, key, mine))
	step("second", lock(c.second, key, theirs))
	step("owner", must(redis.String(c.second.Do("GET", key))))
	step("foreign", must(redis.Int(release.Do(c.second, key, theirs))))
	step("release", must(redis.Int(release.Do(c.first, key, mine))))
	step("free", yes(must(c.first.Do("GET", key)) == nil))
	step("kept", lock(c.first, key+":kept", mine))
}

func (c *redigoClient) close() {
	check(c.first.Close())
	check(c.second.Close())
}
