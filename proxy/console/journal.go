package console

import (
	"context"
	"math"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// clients shows the clients of this process, the oldest first.
func (c *Console) clients(context.Context, Command) any {
	now := time.Now()
	return listOf(c.Clients(), func(_ int, client events.ClientInfo) any {
		waits := any(nil)
		if client.Command != "" {
			waits = now.Sub(client.Began)
		}
		return pairs{
			"id", client.ID, "addr", client.Address, "name", client.Name, "user", client.User, "db", client.DB, "resp", client.RESP,
			"lib-name", client.LibName, "lib-ver", client.LibVersion, "age-ms", now.Sub(client.Arrived), "idle-ms", client.Idle,
			"locks-taken", client.Granted, "waits-on", client.WaitsOn, "waits-for", client.Command, "waits-for-key", client.Key, "waits-ms", waits,
		}
	})
}

// hottest returns the ten lock keys that were refused most.
func (c *Console) hottest() []events.HotKey {
	rules := c.Active.Load().Router.Rules
	return c.Journal.Hottest(10, time.Now(), func(db int, key []byte) bool { return rules.Find(db, key) != nil })
}

func (c *Console) hot(context.Context, Command) any {
	return listOf(c.hottest(), func(_ int, k events.HotKey) any {
		return pairs{"key", k.Key, "db", k.DB, "refused", k.Refusals, "too-high-by", k.Excess}
	})
}

// slowlog has the form and the texts of Redis's SLOWLOG.
func (c *Console) slowlog(_ context.Context, call Command) any {
	switch sub, args := call.Args[2], call.Args[3:]; {
	case wire.IsWord(sub, "GET") && len(args) <= 1:
		count := int64(10)
		if len(args) == 1 {
			var ok bool
			if count, ok = resp.ParseDecimal(args[0]); !ok || count < -1 {
				return wire.Error("-ERR count should be greater than or equal to -1\r\n")
			}
		}
		if count == -1 {
			count = math.MaxInt32
		}
		return listOf(c.Journal.Slow(int(min(count, math.MaxInt32))), func(_ int, slow events.SlowCommand) any {
			parts := []any{slow.ID, slow.At.Unix(), slow.Took.Microseconds(), slow.Shown(), slow.Client.Address, slow.Client.Name}
			return listOf(parts, func(_ int, part any) any { return part })
		})
	case wire.IsWord(sub, "LEN") && len(args) == 0:
		return len(c.Journal.Slow(math.MaxInt32))
	case wire.IsWord(sub, "RESET") && len(args) == 0:
		c.Journal.ForgetSlow()
		return line("OK")
	default:
		sub = wire.UntilNUL(sub)
		return wire.Error("-ERR unknown subcommand or wrong number of arguments for '" + wire.OneLine(sub[:min(len(sub), 128)]) + "'. Try REDLOCK HELP.\r\n")
	}
}
