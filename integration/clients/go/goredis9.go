package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

type goRedis9Client struct {
	arguments
	ctx           context.Context
	first, second *redis.Client
}

func openGoRedis9(args arguments) client {
	return &goRedis9Client{args, context.Background(), dialGoRedis9(args), dialGoRedis9(args)}
}

func dialGoRedis9(args arguments) *redis.Client {
	options := &redis.Options{Addr: args.addr, Protocol: args.protocol, ReadTimeout: 20 * time.Second, MaxRetries: -1}
	if args.password != "" {
		options.Password, options.DB, options.ClientName = args.password, args.db, "handshake"
	}
	return redis.NewClient(options)
}

func (c *goRedis9Client) ordinary() {
	value, count := "h:"+c.name+":value", "h:"+c.name+":count"
	step("set", yes(must(c.first.Set(c.ctx, value, "one", 0).Result()) == "OK"))
	step("get", must(c.first.Get(c.ctx, value).Result()))
	step("incr", must(c.first.Incr(c.ctx, count).Result()))
	pipe := c.first.Pipeline()
	by, by1, at := pipe.IncrBy(c.ctx, count, 10), pipe.Incr(c.ctx, count), pipe.Get(c.ctx, count)
	must(pipe.Exec(c.ctx))
	step("pipeline", by.Val(), by1.Val(), at.Val())
	transaction := c.first.TxPipeline()
	by1, at = transaction.Incr(c.ctx, count), transaction.Get(c.ctx, count)
	must(transaction.Exec(c.ctx))
	step("multi", by1.Val(), at.Val())
}

func (c *goRedis9Client) messages() {
	channel := "h:" + c.name + ":channel"
	listener := c.second.Subscribe(c.ctx, channel)
	defer listener.Close()
	step("subscribed", yes(must(listener.Receive(c.ctx)).(*redis.Subscription).Count == 1))
	must(c.first.Publish(c.ctx, channel, "hello").Result())
	step("message", must(listener.ReceiveMessage(c.ctx)).Payload)
	check(listener.Unsubscribe(c.ctx, channel))
	step("unsubscribed", yes(must(listener.Receive(c.ctx)).(*redis.Subscription).Count == 0))
}

func (c *goRedis9Client) locks() {
	key := "lock:" + c.name
	release := redis.NewScript(releaseScript)
	step("lock", yes(must(c.first.SetNX(c.ctx, key, mine, time.Minute).Result())))
	step("second", yes(must(c.second.SetNX(c.ctx, key, theirs, time.Minute).Result())))
	step("owner", must(c.second.Get(c.ctx, key).Result()))
	step("foreign", must(release.Run(c.ctx, c.second, []string{key}, theirs).Int()))
	step("release", must(release.Run(c.ctx, c.first, []string{key}, mine).Int()))
	step("free", yes(errors.Is(c.first.Get(c.ctx, key).Err(), redis.Nil)))
	step("kept", yes(must(c.first.SetNX(c.ctx, key+":kept", mine, time.Minute).Result())))
}

func (c *goRedis9Client) close() {
	check(c.first.Close())
	check(c.second.Close())
}
