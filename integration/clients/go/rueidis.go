package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

type rueidisClient struct {
	arguments
	ctx           context.Context
	first, second rueidis.Client
}

func openRueidis(args arguments) client { return newRueidisClient(args, false) }

// openRueidisWithoutCache does without CLIENT TRACKING, which rueidis turns on
// at connect and insists on unless it is told not to.
func openRueidisWithoutCache(args arguments) client { return newRueidisClient(args, true) }

func newRueidisClient(args arguments, withoutCache bool) client {
	dial := func() rueidis.Client {
		options := rueidis.ClientOption{InitAddress: []string{args.addr}, DisableCache: withoutCache, DisableRetry: true,
			AlwaysRESP2: args.protocol == 2, ConnWriteTimeout: 20 * time.Second}
		if args.password != "" {
			options.Password, options.SelectDB, options.ClientName = args.password, args.db, "handshake"
		}
		return must(rueidis.NewClient(options))
	}
	return &rueidisClient{args, context.Background(), dial(), dial()}
}

func (c *rueidisClient) ordinary() {
	value, count := "h:"+c.name+":value", "h:"+c.name+":count"
	build := c.first.B
	step("set", yes(must(c.first.Do(c.ctx, build().Set().Key(value).Value("one").Build()).ToString()) == "OK"))
	step("get", must(c.first.Do(c.ctx, build().Get().Key(value).Build()).ToString()))
	step("incr", must(c.first.Do(c.ctx, build().Incr().Key(count).Build()).ToInt64()))
	replies := c.first.DoMulti(c.ctx, build().Incrby().Key(count).Increment(10).Build(),
		build().Incr().Key(count).Build(), build().Get().Key(count).Build())
	step("pipeline", must(replies[0].ToInt64()), must(replies[1].ToInt64()), must(replies[2].ToString()))
	check(c.first.Dedicated(func(dedicated rueidis.DedicatedClient) error {
		replies := dedicated.DoMulti(c.ctx, build().Multi().Build(), build().Incr().Key(count).Build(),
			build().Get().Key(count).Build(), build().Exec().Build())
		results := must(replies[3].ToArray())
		step("multi", must(results[0].ToInt64()), must(results[1].ToString()))
		return nil
	}))
}

func (c *rueidisClient) messages() {
	channel := "h:" + c.name + ":channel"
	listener, release := c.second.Dedicate()
	defer release()
	counts, texts := make(chan int64, 2), make(chan string, 1)
	listener.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { texts <- m.Message },
		OnSubscription: func(s rueidis.PubSubSubscription) { counts <- s.Count },
	})
	check(listener.Do(c.ctx, listener.B().Subscribe().Channel(channel).Build()).Error())
	step("subscribed", yes(<-counts == 1))
	check(c.first.Do(c.ctx, c.first.B().Publish().Channel(channel).Message("hello").Build()).Error())
	step("message", <-texts)
	check(listener.Do(c.ctx, listener.B().Unsubscribe().Channel(channel).Build()).Error())
	step("unsubscribed", yes(<-counts == 0))
}

func (c *rueidisClient) locks() {
	key := "lock:" + c.name
	lock := func(client rueidis.Client, key, token string) string {
		err := client.Do(c.ctx, client.B().Set().Key(key).Value(token).Nx().PxMilliseconds(60000).Build()).Error()
		if !rueidis.IsRedisNil(err) {
			check(err)
		}
		return yes(err == nil)
	}
	release := rueidis.NewLuaScript(releaseScript)
	step("lock", lock(c.first, key, mine))
	step("second", lock(c.second, key, theirs))
	step("owner", must(c.second.Do(c.ctx, c.second.B().Get().Key(key).Build()).ToString()))
	step("foreign", must(release.Exec(c.ctx, c.second, []string{key}, []string{theirs}).ToInt64()))
	step("release", must(release.Exec(c.ctx, c.first, []string{key}, []string{mine}).ToInt64()))
	step("free", yes(rueidis.IsRedisNil(c.first.Do(c.ctx, c.first.B().Get().Key(key).Build()).Error())))
	step("kept", lock(c.first, key+":kept", mine))
}

func (c *rueidisClient) close() {
	c.first.Close()
	c.second.Close()
}
