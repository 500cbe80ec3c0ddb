package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ready tells why no lock could be decided now; nil if one could.
func (p *Proxy) ready() error {
	answering, masters := p.locker.Reachable()
	return judgeReadiness(p.draining.Load(), answering, masters)
}

func judgeReadiness(draining bool, answering, masters int) error {
	quorum := masters/2 + 1
	switch {
	case draining:
		return errors.New("draining: the proxy is ending and takes no new clients")
	case answering < quorum:
		return fmt.Errorf("%d of %d lock masters answer, %d needed", answering, masters, quorum)
	}
	return nil
}

// appendInfo appends the fields of INFO's section Redlock.
func (p *Proxy) appendInfo(dst []byte) []byte {
	answering, masters := p.locker.Reachable()
	ready := 0
	if p.ready() == nil {
		ready = 1
	}
	return fmt.Appendf(dst, "redlock_proxy_version:%s\r\nredlock_masters:%d\r\nredlock_masters_reachable:%d\r\nredlock_quorum:%d\r\nredlock_ready:%d\r\nredlock_lock_rules:%d\r\nredlock_locks_without_ttl:%d\r\n",
		Version(), masters, answering, masters/2+1, ready, len(p.cfg.Locks), p.locks.takenWithoutTTL())
}

// killScripts has every master end the script it runs, and tells whether any
// master ran one.
func killScripts(ctx context.Context, masters []endpoint) bool {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	var asking sync.WaitGroup
	var killed atomic.Bool
	for _, master := range masters {
		asking.Go(func() {
			client := redis.NewClient(master.clientOptions())
			defer client.Close()
			if client.ScriptKill(ctx).Err() == nil {
				killed.Store(true)
			}
		})
	}
	asking.Wait()
	return killed.Load()
}
