package console

import (
	"context"
	"math"
	"time"

	"redlock-proxy/proxy/journal"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// clients shows the clients of this process, the oldest first.
func (c *Console) clients(_ context.Context, r *reply, _ Command) {
	list, now := c.Clients(), time.Now()
	r.array(len(list))
	for _, client := range list {
		r.fields(15)
		r.integerField("id", client.ID)
		r.textField("addr", client.Address)
		r.textField("name", client.Name)
		r.textField("user", client.User)
		r.integerField("db", int64(client.DB))
		r.integerField("resp", int64(client.RESP))
		r.textField("lib-name", client.LibName)
		r.textField("lib-ver", client.LibVersion)
		r.integerField("age-ms", now.Sub(client.Arrived).Milliseconds())
		r.integerField("idle-ms", client.Idle.Milliseconds())
		r.integerField("locks-taken", client.Granted)
		r.textField("waits-on", client.WaitsOn)
		r.textField("waits-for", client.Command)
		r.textField("waits-for-key", client.Key)
		r.text("waits-ms")
		if client.Command == "" {
			r.null()
		} else {
			r.integer(now.Sub(client.Began).Milliseconds())
		}
	}
}

const hottest = 10

// hot shows the most refused lock keys.
func (c *Console) hot(_ context.Context, r *reply, _ Command) {
	rules := c.Active.Load().Router.Rules
	list := c.Journal.Hottest(hottest, time.Now(), func(db int, key []byte) bool { return rules.Find(db, key) != nil })
	r.array(len(list))
	for _, k := range list {
		r.fields(4)
		r.textField("key", k.Key)
		r.integerField("db", int64(k.DB))
		r.integerField("refused", k.Refusals)
		r.integerField("too-high-by", k.Excess)
	}
}

// slowlog has the form and the texts of Redis's SLOWLOG.
func (c *Console) slowlog(_ context.Context, r *reply, call Command) {
	switch sub, args := call.Args[2], call.Args[3:]; {
	case wire.IsWord(sub, "GET") && len(args) <= 1:
		count := int64(10)
		if len(args) == 1 {
			var ok bool
			if count, ok = resp.ParseDecimal(args[0]); !ok || count < -1 {
				r.refuse("-ERR count should be greater than or equal to -1\r\n")
				return
			}
		}
		if count == -1 {
			count = math.MaxInt32
		}
		r.slowCommands(c.Journal.Slow(int(min(count, math.MaxInt32))))
	case wire.IsWord(sub, "LEN") && len(args) == 0:
		r.integer(int64(c.Journal.SlowLen()))
	case wire.IsWord(sub, "RESET") && len(args) == 0:
		c.Journal.ForgetSlow()
		r.line("OK")
	default:
		sub = wire.UntilNUL(sub)
		r.refuse(wire.Error("-ERR unknown subcommand or wrong number of arguments for '" + wire.OneLine(sub[:min(len(sub), 128)]) + "'. Try REDLOCK HELP.\r\n"))
	}
}

func (r *reply) slowCommands(list []journal.SlowCommand) {
	r.array(len(list))
	for _, slow := range list {
		r.array(6)
		r.integer(slow.ID)
		r.integer(slow.At.Unix())
		r.integer(slow.Took.Microseconds())
		r.list(slow.Shown())
		r.text(slow.Client.Address)
		r.text(slow.Client.Name)
	}
}
