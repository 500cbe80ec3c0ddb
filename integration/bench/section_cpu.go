package main

import (
	"context"
	"fmt"
	"time"

	"redlock-proxy/integration/child"
)

// statedBound is the CPU time of SET NX PX (0.65 us) and the script (1.6 us) on one master
// when they arrive in long pipelines and nothing is checked.
const statedBound = 2.25

// measureCPU measures the CPU time per cycle of lock and release, of the proxy and of the
// masters. It compares that with the cost of the same two commands on a master that gets
// nothing else, in long pipelines. If all processes share the processors, the total of their
// CPU time bounds the throughput.
func measureCPU(ctx context.Context, b *bench) {
	const clients = 50
	c := b.startCluster(ctx, 5)
	of := b.lockers(ctx, c, clients)
	bound := b.pipelinedCycles(ctx, c.masters[0])
	masters := c.masterProcesses()
	direct := map[string][]*child.Process{"masters": masters, "all": append([]*child.Process{thisProcess()}, masters...)}
	proxied := map[string][]*child.Process{"masters": masters, "proxy": {c.proxy.Process}, "all": append(direct["all"], c.proxy.Process)}
	pumping := b.pumping(c.upstream, clients)
	const pipelined, pumped = "pipelined at one master", "byte pump"
	all := must(b.alternate(ctx,
		spending(lean, cycles(of[lean], wholeCycle), proxied),
		spending(redsyncProxy, cycles(of[redsyncProxy], wholeCycle), proxied),
		spending(redsyncDirect, cycles(of[redsyncDirect], wholeCycle), direct),
		contestant{pipelined, bound}, contestant{pumped, pumping}))
	oneMaster, atBest := all.of(lean, "masters").times(1.0/float64(len(masters))), all.of(pipelined, "masters")
	b.report("the proxy, per cycle", all.of(lean, "proxy"), "us", bar{},
		fmt.Sprintf("%s us is what a cycle costs one master at best in this run", amount(atBest.median(), "")))
	b.report("the proxy, per cycle / a byte pump, per command", all.of(lean, "proxy").over(all.of(pumped, "cpu")), "x", atMost(1.5),
		medians("us; the pump has as many reads and writes, and nothing else", all.of(lean, "proxy"), all.of(pumped, "cpu")))
	b.report("each master, per cycle", oneMaster, "us", bar{},
		fmt.Sprintf("at best %s us in this run; %.2f us is the stated bound", amount(atBest.median(), ""), statedBound))
	b.report("each master: proxy / at best, pipelined", oneMaster.over(atBest), "x", bar{}, medians("us", oneMaster, atBest))
	b.report("all masters: proxy / redsync, masters", all.ratio("masters", lean, redsyncDirect), "x", bar{},
		medians("us", all.of(lean, "masters"), all.of(redsyncDirect, "masters")))
	for _, contestant := range []string{lean, redsyncProxy} {
		b.report(fmt.Sprintf("clients, proxy and masters: %s / %s", contestant, redsyncDirect),
			all.ratio("all", contestant, redsyncDirect), "x", bar{},
			medians("us", all.of(contestant, "all"), all.of(redsyncDirect, "all")))
	}
}

// spending is driven, and adds the CPU time per turn of some children, in microseconds.
func spending(name string, clients []turn, children map[string][]*child.Process) contestant {
	return contestant{name, func(ctx context.Context, length time.Duration) (figures, error) {
		before := map[string]time.Duration{}
		for who, group := range children {
			spent, err := cpuOf(group...)
			if err != nil {
				return nil, err
			}
			before[who] = spent
		}
		made, err := drive(ctx, length, clients)
		if err != nil {
			return nil, err
		}
		measured := made.figures()
		for who, group := range children {
			spent, err := cpuOf(group...)
			if err != nil {
				return nil, err
			}
			measured[who] = microseconds(spent-before[who]) / float64(len(made.latencies))
		}
		return measured, nil
	}}
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// pipelinedCycles measures a master's CPU time per cycle if it gets only SET NX PX and
// EVALSHA, a hundred of each at a time.
func (b *bench) pipelinedCycles(ctx context.Context, master *redisServer) func(context.Context, time.Duration) (figures, error) {
	const depth = 100
	client := must(dialLean(ctx, master.addr()))
	b.atEnd(client.close)
	check(client.lockWith(compareAndDelete))
	batch := func(context.Context) (time.Duration, error) {
		began := time.Now()
		for range depth {
			token := nextToken()
			client.queue("SET", "lock:bench:pipelined", token, "NX", "PX", ttlText)
			client.queue("EVALSHA", client.sha, "1", "lock:bench:pipelined", token)
		}
		check(client.flush())
		for range 2 * depth {
			must(client.read())
		}
		return time.Since(began), nil
	}
	spent := spending("", []turn{batch}, map[string][]*child.Process{"masters": {master.Process}})
	return func(ctx context.Context, length time.Duration) (figures, error) {
		measured, err := spent.measure(ctx, length)
		if err == nil {
			measured["masters"] /= depth
		}
		return measured, err
	}
}

// pumping measures a byte pump's CPU time per command. The pump runs in this process, which
// does nothing else meanwhile.
func (b *bench) pumping(target *redisServer, clients int) func(context.Context, time.Duration) (figures, error) {
	bare := b.startPump(target.addr())
	load := &redisBenchmark{port: bare.port(), clients: clients, pipeline: 1, command: []string{"GET", "key:__rand_int__"}}
	return load.spentBy(thisProcess())
}
