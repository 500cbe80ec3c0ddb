package main

import (
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
func measureCPU(b *bench) {
	const clients = 50
	c := b.startCluster(5)
	of := b.lockers(c, clients)
	bound := b.pipelinedCycles(c.masters[0])
	masters := c.masterProcesses()
	direct := map[string][]*child.Process{"masters": masters, "all": append([]*child.Process{thisProcess()}, masters...)}
	proxied := map[string][]*child.Process{"masters": masters, "proxy": {c.proxy.Process}, "all": append(direct["all"], c.proxy.Process)}
	const pipelined, pumped = "pipelined at one master", "byte pump"
	all := b.alternate(
		spending(lean, cycles(of[lean], wholeCycle), proxied),
		spending(redsyncProxy, cycles(of[redsyncProxy], wholeCycle), proxied),
		spending(redsyncDirect, cycles(of[redsyncDirect], wholeCycle), direct),
		contestant{pipelined, bound}, b.pumping(pumped, c.upstream, clients))
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
		b.compare(all, "all", "us", contestant, redsyncDirect, "clients, proxy and masters", bar{})
	}
}

// spending is driven, and adds the CPU time per turn of some children, in microseconds.
func spending(name string, clients []turn, children map[string][]*child.Process) contestant {
	return contestant{name, func(length time.Duration) figures {
		before := map[string]time.Duration{}
		for who, group := range children {
			before[who] = cpu(group...)
		}
		made := drive(length, clients)
		measured := made.figures()
		for who, group := range children {
			measured[who] = microseconds(cpu(group...)-before[who]) / float64(len(made.latencies))
		}
		return measured
	}}
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// pipelinedCycles measures a master's CPU time per cycle if it gets only SET NX PX and
// EVALSHA, a hundred of each at a time.
func (b *bench) pipelinedCycles(master *server) func(time.Duration) figures {
	const depth = 100
	client := must(dialLean(master.addr()))
	b.atEnd(client.close)
	check(client.lockWith(compareAndDelete))
	batch := func() (time.Duration, error) {
		began := time.Now()
		for range depth {
			token := nextToken()
			client.queue("SET", "lock:bench:pipelined", token, "NX", "PX", ttlText)
			client.queue("EVALSHA", client.sha, "1", "lock:bench:pipelined", token)
		}
		err := client.flush()
		for n := 0; n < 2*depth && err == nil; n++ {
			_, err = client.read()
		}
		return time.Since(began), err
	}
	spent := spending("", []turn{batch}, map[string][]*child.Process{"masters": {master.Process}})
	return func(length time.Duration) figures {
		measured := spent.measure(length)
		measured["masters"] /= depth
		return measured
	}
}

// pumping measures a byte pump's CPU time per command. The pump runs in this process, which
// does nothing else meanwhile.
func (b *bench) pumping(name string, target *server, clients int) contestant {
	bare := b.startPump(target.addr())
	load := &redisBenchmark{port: bare.port(), clients: clients, pipeline: 1, command: []string{"GET", "key:__rand_int__"}}
	return load.spentBy(name, thisProcess())
}
