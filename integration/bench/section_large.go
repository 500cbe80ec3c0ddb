package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/child"
)

const mebibyte = 1 << 20

// measureLarge compares pipelines of large values with a byte pump, and measures what one very long reply
// costs in memory.
func measureLarge(b *bench) {
	measureLargeValues(b)
	measureLargeReply(b)
}

// measureLargeValues has one client send SETs of 1 MB in a pipeline, and GETs of them.
func measureLargeValues(b *bench) {
	const keys = 30 // more would need more memory
	c := b.startCluster(3)
	owning := b.startProxy(c.addresses(), c.upstream, generousTimeout, ownConnections)
	bare := b.startPump(c.upstream.addr())
	value := strings.Repeat("x", 1_000_000)
	sets, gets := new(leanClient), new(leanClient)
	for i := range b.largeValues {
		key := fmt.Sprint("large:", i%keys)
		sets.queue("SET", key, value)
		gets.queue("GET", key)
	}
	addresses := map[string]string{
		proxied: c.proxy.addr(), own: owning.addr(), pumped: child.Loopback(bare.port()), direct: c.upstream.addr(),
	}
	for name, request := range map[string][]byte{"SET": sets.request, "GET": gets.request} {
		var contestants []contestant
		for _, who := range []string{proxied, own, pumped, direct} {
			contestants = append(contestants, contestant{who, func(time.Duration) figures {
				return figures{"milliseconds": float64(answered(addresses[who], request, b.largeValues).Milliseconds())}
			}})
		}
		all := b.alternate(contestants...)
		for _, ours := range []string{proxied, own} {
			for other, wanted := range map[string]bar{pumped: atMost(1.3), direct: {}} {
				b.compare(all, "milliseconds", "ms", ours, other, fmt.Sprintf("%d pipelined %ss of 1 MB, time", b.largeValues, name), wanted)
			}
		}
	}
}

// answered returns the time that a server takes for a pipeline of so many commands.
func answered(addr string, pipeline []byte, commands int) time.Duration {
	client := must(dialLean(addr))
	defer client.close()
	must(client.do("PING"))
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		_, err := client.conn.Write(pipeline)
		sent <- err
	}()
	for range commands {
		must(client.read())
	}
	took := time.Since(began)
	check(<-sent)
	return took
}

// measureLargeReply has a reply of 100 MB pass through the proxy and measures the proxy's
// memory meanwhile. One client reads at once, another rests in between.
func measureLargeReply(b *bench) {
	const key = "large"
	c := b.startCluster(3)
	filler := must(dialLean(c.upstream.addr()))
	defer filler.close()
	must(filler.do("SETRANGE", key, strconv.Itoa(b.largeReply-1), "x"))
	start := resident(c.proxy.Process)
	reading := func(name string, pause time.Duration) contestant {
		return contestant{name, func(time.Duration) figures {
			return figures{"grown": (c.proxy.residentWhileReading(key, b.largeReply, pause) - start) / mebibyte}
		}}
	}
	const fast, slow = "a client that reads at once", "a client that rests in between"
	all := b.alternate(reading(fast, 0), reading(slow, 5*time.Millisecond))
	for _, client := range []string{fast, slow} {
		b.report(fmt.Sprintf("resident memory grows, for a reply of %.0f MB to %s, by", float64(b.largeReply)/mebibyte, client),
			all.of(client, "grown"), "MiB", atMost(4), "a few, says the bar")
	}
}

// residentWhileReading returns the proxy's highest observed memory while a client read a
// string of this size from the upstream.
func (s *server) residentWhileReading(key string, size int, pause time.Duration) (peak float64) {
	client := must(dialLean(s.addr()))
	defer client.close()
	client.queue("GET", key)
	check(client.flush())
	must(client.reader.ReadSlice('\n'))
	for left := int64(size + len("\r\n")); left > 0; {
		left -= must(io.CopyN(io.Discard, client.reader, min(left, mebibyte)))
		rest(pause)
		peak = max(peak, resident(s.Process))
	}
	check(running.Err())
	return peak
}
