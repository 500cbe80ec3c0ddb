package conformance

import "slices"

func init() {
	var (
		redisson3   = java("ConformanceRedisson", "redisson-3")
		redisson4   = java("ConformanceRedisson", "redisson-4")
		byHand      = map[string]string{"waiting": "the commands alone do not wait"}
		watchdog    = map[string]string{"extend": "the watchdog does it"}
		notLookedAt = map[string]string{"inspection": "the lock cannot be looked at"}
		oneTTL      = map[string]string{
			"extend":     "the registry has one TTL for all of its locks",
			"inspection": notLookedAt["inspection"],
		}
		renewing = map[string]string{
			"extend":     "the registry's own renewals put back its TTL",
			"inspection": notLookedAt["inspection"],
		}
		tasks = map[string]string{
			"foreign release": "what releases comes only with the lock",
			"inspection":      notLookedAt["inspection"],
			"waiting":         "a task is left out while its lock is held",
		}
	)
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "Jedis", version: "3.10.0", variant: "by hand", program: java("ConformanceJedis", "jedis-3"), skips: byHand},
		{library: "Jedis", version: "8.0.2", variant: "by hand", program: java("ConformanceJedis", "jedis-8"), skips: byHand, overValkey: true},
		{library: "Lettuce", version: "7.7.0.RELEASE", variant: "by hand", program: java("ConformanceLettuce", "lettuce-7"), skips: byHand},

		{library: "Redisson", version: "3.17.7", variant: "RLock", selects: "lock", program: redisson3},
		{library: "Redisson", version: "3.17.7", variant: "RLock, watchdog", selects: "watchdog", program: redisson3, skips: watchdog, renews: true},
		{library: "Redisson", version: "3.17.7", variant: "fair lock", selects: "fair", program: redisson3},
		{library: "Redisson", version: "3.17.7", variant: "write lock", selects: "write", program: redisson3},
		{library: "Redisson", version: "3.17.7", variant: "multi lock", swallowsErrors: true, selects: "multi", program: redisson3, skips: notLookedAt},
		{library: "Redisson", version: "4.7.0", variant: "RLock", selects: "lock", program: redisson4, overValkey: true},
		{library: "Redisson", version: "4.7.0", variant: "RLock, watchdog", selects: "watchdog", program: redisson4, skips: watchdog, renews: true},
		{library: "Redisson", version: "4.7.0", variant: "fair lock", selects: "fair", program: redisson4},
		{library: "Redisson", version: "4.7.0", variant: "write lock", selects: "write", program: redisson4},
		{library: "Redisson", version: "4.7.0", variant: "multi lock", swallowsErrors: true, selects: "multi", program: redisson4},
		{library: "Redisson", version: "4.7.0", variant: "spin lock", selects: "spin", program: redisson4},
		{library: "Redisson", version: "4.7.0", variant: "fenced lock", selects: "fenced", program: redisson4,
			masterKeys: []string{"redisson_lock_token:*"}},

		{library: "Spring RedisLockRegistry", version: "6.5.5", failedNode: "CannotAcquireLockException", variant: "spin lock", selects: "spin-lettuce",
			program: java("ConformanceSpring", "spring-6"), skips: oneTTL},
		{library: "Spring RedisLockRegistry", version: "6.5.5", failedNode: "CannotAcquireLockException", variant: "pub-sub lock", selects: "pubsub-lettuce",
			program: java("ConformanceSpring", "spring-6"), skips: oneTTL},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "spin lock", selects: "spin-lettuce",
			program: java("ConformanceSpring7", "spring-7"), skips: notLookedAt},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "pub-sub lock", selects: "pubsub-lettuce",
			program: java("ConformanceSpring7", "spring-7"), skips: notLookedAt},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "pub-sub lock, Jedis", selects: "pubsub-jedis",
			program: java("ConformanceSpring7", "spring-7"), skips: notLookedAt},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "renewing", selects: "renewed-lettuce",
			program: java("ConformanceSpring7", "spring-7"), skips: renewing, renews: true},

		{library: "ShedLock", version: "5.12.0", variant: "jedis4", rule: "job-lock:*",
			program: java("ConformanceShedLockJedis", "shedlock-jedis"), skips: tasks},
		{library: "ShedLock", version: "7.10.1", failedNode: "RedisSystemException", variant: "redis-spring", selects: "default", rule: "job-lock:*",
			program: java("ConformanceShedLockSpring", "shedlock-spring"), skips: tasks},
		{library: "ShedLock", version: "7.10.1", failedNode: "RedisSystemException", variant: "redis-spring, safeUpdate", selects: "safe", rule: "job-lock:*",
			program: java("ConformanceShedLockSpring", "shedlock-spring"), skips: tasks},
	})
}
