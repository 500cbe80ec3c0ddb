package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

const mebibyte = 1 << 20

// measureLargeReply has a reply of 100 MB pass through the proxy and measures the proxy's
// memory meanwhile. One client reads at once, another rests in between.
func measureLargeReply(ctx context.Context, b *bench) error {
	const key = "large"
	c, err := b.startCluster(ctx, 3)
	if err != nil {
		return err
	}
	filler, err := dialLean(ctx, c.upstream.addr())
	if err != nil {
		return err
	}
	defer filler.close()
	if _, err := filler.do("SETRANGE", key, strconv.Itoa(b.largeReply-1), "x"); err != nil {
		return err
	}
	start, err := resident(c.proxy.Process)
	if err != nil {
		return err
	}
	reading := func(name string, pause time.Duration) contestant {
		return contestant{name, func(ctx context.Context, _ time.Duration) (figures, error) {
			peak, err := c.proxy.residentWhileReading(ctx, key, b.largeReply, pause)
			return figures{"grown": (peak - start) / mebibyte}, err
		}}
	}
	const fast, slow = "a client that reads at once", "a client that rests in between"
	all, err := b.alternate(ctx, reading(fast, 0), reading(slow, 5*time.Millisecond))
	if err != nil {
		return err
	}
	for _, client := range []string{fast, slow} {
		b.report(fmt.Sprintf("resident memory grows, for a reply of %.0f MB to %s, by", float64(b.largeReply)/mebibyte, client),
			all.of(client, "grown"), "MiB", atMost(4), "a few, says the bar")
	}
	return nil
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
