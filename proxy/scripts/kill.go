package scripts

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/endpoint"
)

// killTimeout bounds SCRIPT KILL on all masters.
const killTimeout = 2 * time.Second

// Kill sends SCRIPT KILL to every master. It reports whether any of them killed a script.
func Kill(ctx context.Context, masters []endpoint.Endpoint) bool {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	var asking sync.WaitGroup
	var killed atomic.Bool
	for _, master := range masters {
		asking.Go(func() {
			client := redis.NewClient(master.Options())
			defer client.Close()
			if client.ScriptKill(ctx).Err() == nil {
				killed.Store(true)
			}
		})
	}
	asking.Wait()
	return killed.Load()
}
