package main

import (
	"context"
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
func measureLarge(ctx context.Context, b *bench) {
	measureLargeValues(ctx, b)
	measureLargeReply(ctx, b)
}

// measureLargeValues has one client send SETs of 1 MB in a pipeline, and GETs of them.
func measureLargeValues(ctx context.Context, b *bench) {
	const keys = 30 // more would need more memory
	c := b.startCluster(ctx, 3)
	owning := b.startProxyOf(ctx, c, "own")
	bare := b.startPump(c.upstream.addr())
	value := strings.Repeat("x", 1_000_000)
	sets, gets := new(leanClient), new(leanClient)
	for i := range b.largeValues {
		key := fmt.Sprint("large:", i%keys)
		sets.queue("SET", key, value)
		gets.queue("GET", key)
	}
	const proxied, own, pumped, direct = "proxy", "proxy with own connections", "byte pump", "plain Redis"
	addresses := map[string]string{
		proxied: c.proxy.addr(), own: owning.addr(), pumped: child.Loopback(bare.port()), direct: c.upstream.addr(),
	}
	for _, run := range []struct {
		name    string
		request []byte
	}{{"SET", sets.request}, {"GET", gets.request}} {
		var contestants []contestant
		for _, name := range []string{proxied, own, pumped, direct} {
			contestants = append(contestants, contestant{name, func(ctx context.Context, _ time.Duration) (figures, error) {
				took, err := answered(ctx, addresses[name], run.request, b.largeValues)
				return figures{"milliseconds": float64(took.Milliseconds())}, err
			}})
		}
		all := must(b.alternate(ctx, contestants...))
		for _, ours := range []string{proxied, own} {
			for _, other := range []string{pumped, direct} {
				wanted := bar{}
				if other == pumped {
					wanted = atMost(1.3)
				}
				b.report(fmt.Sprintf("%d pipelined %ss of 1 MB, time: %s / %s", b.largeValues, run.name, ours, other), all.ratio("milliseconds", ours, other),
					"x", wanted, medians("ms", all.of(ours, "milliseconds"), all.of(other, "milliseconds")))
			}
		}
	}
}

// answered returns the time that a server takes for a pipeline of so many commands.
func answered(ctx context.Context, addr string, pipeline []byte, commands int) (time.Duration, error) {
	client, err := dialLean(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer client.close()
	if _, err := client.do("PING"); err != nil {
		return 0, err
	}
	began := time.Now()
	sent := make(chan error, 1)
	go func() {
		_, err := client.conn.Write(pipeline)
		sent <- err
	}()
	for range commands {
		if _, err := client.read(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), <-sent
}

// measureLargeReply has a reply of 100 MB pass through the proxy and measures the proxy's
// memory meanwhile. One client reads at once, another rests in between.
func measureLargeReply(ctx context.Context, b *bench) {
	const key = "large"
	c := b.startCluster(ctx, 3)
	filler := must(dialLean(ctx, c.upstream.addr()))
	defer filler.close()
	must(filler.do("SETRANGE", key, strconv.Itoa(b.largeReply-1), "x"))
	start := must(resident(c.proxy.Process))
	reading := func(name string, pause time.Duration) contestant {
		return contestant{name, func(ctx context.Context, _ time.Duration) (figures, error) {
			peak, err := c.proxy.residentWhileReading(ctx, key, b.largeReply, pause)
			return figures{"grown": (peak - start) / mebibyte}, err
		}}
	}
	const fast, slow = "a client that reads at once", "a client that rests in between"
	all := must(b.alternate(ctx, reading(fast, 0), reading(slow, 5*time.Millisecond)))
	for _, client := range []string{fast, slow} {
		b.report(fmt.Sprintf("resident memory grows, for a reply of %.0f MB to %s, by", float64(b.largeReply)/mebibyte, client),
			all.of(client, "grown"), "MiB", atMost(4), "a few, says the bar")
	}
}

// residentWhileReading returns the proxy's highest observed memory while a client read a
// string of this size from the upstream.
func (p *proxyServer) residentWhileReading(ctx context.Context, key string, size int, pause time.Duration) (float64, error) {
	client, err := dialLean(ctx, p.addr())
	if err != nil {
		return 0, err
	}
	defer client.close()
	client.queue("GET", key)
	if err := client.flush(); err != nil {
		return 0, err
	}
	if _, err := client.reader.ReadSlice('\n'); err != nil {
		return 0, err
	}
	var peak float64
	for left := int64(size + len("\r\n")); left > 0; {
		n, err := io.CopyN(io.Discard, client.reader, min(left, mebibyte))
		if err != nil {
			return 0, err
		}
		left -= n
		rest(ctx, pause)
		now, err := resident(p.Process)
		if err != nil {
			return 0, err
		}
		peak = max(peak, now)
	}
	return peak, ctx.Err()
}
