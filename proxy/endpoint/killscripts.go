package endpoint

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// killTimeout bounds SCRIPT KILL on all servers.
const killTimeout = 2 * time.Second

// KillScripts sends SCRIPT KILL to every server. It reports whether any of them killed a script.
func KillScripts(ctx context.Context, servers []Endpoint) bool {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	var asking sync.WaitGroup
	var killed atomic.Bool
	for _, server := range servers {
		asking.Go(func() {
			client := redis.NewClient(server.Options())
			defer client.Close()
			if client.ScriptKill(ctx).Err() == nil {
				killed.Store(true)
			}
		})
	}
	asking.Wait()
	return killed.Load()
}
