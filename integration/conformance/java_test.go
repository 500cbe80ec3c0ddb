package conformance

import (
	"path/filepath"
	"slices"
	"testing"

	"redlock-proxy/integration/rig"
)

func init() {
	var (
		redisson3   = javaLibrary("ConformanceRedisson", "redisson-3")
		redisson4   = javaLibrary("ConformanceRedisson", "redisson-4")
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
		{library: "Jedis", version: "3.10.0", variant: "by hand", program: javaLibrary("ConformanceJedis", "jedis-3"), skips: byHand},
		{library: "Jedis", version: "8.0.2", variant: "by hand", program: javaLibrary("ConformanceJedis", "jedis-8"), skips: byHand, overValkey: true},
		{library: "Lettuce", version: "7.7.0.RELEASE", variant: "by hand", program: javaLibrary("ConformanceLettuce", "lettuce-7"), skips: byHand},

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
			program: javaLibrary("ConformanceSpring", "spring-6"), skips: oneTTL},
		{library: "Spring RedisLockRegistry", version: "6.5.5", failedNode: "CannotAcquireLockException", variant: "pub-sub lock", selects: "pubsub-lettuce",
			program: javaLibrary("ConformanceSpring", "spring-6"), skips: oneTTL},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "spin lock", selects: "spin-lettuce",
			program: javaLibrary("ConformanceSpring7", "spring-7"), skips: notLookedAt},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "pub-sub lock", selects: "pubsub-lettuce",
			program: javaLibrary("ConformanceSpring7", "spring-7"), skips: notLookedAt},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "pub-sub lock, Jedis", selects: "pubsub-jedis",
			program: javaLibrary("ConformanceSpring7", "spring-7"), skips: notLookedAt},
		{library: "Spring RedisLockRegistry", version: "7.1.0", failedNode: "CannotAcquireLockException", variant: "renewing", selects: "renewed-lettuce",
			program: javaLibrary("ConformanceSpring7", "spring-7"), skips: renewing, renews: true},

		{library: "ShedLock", version: "5.12.0", variant: "jedis4", rule: "job-lock:*",
			program: javaLibrary("ConformanceShedLockJedis", "shedlock-jedis"), skips: tasks},
		{library: "ShedLock", version: "7.10.1", failedNode: "RedisSystemException", variant: "redis-spring", selects: "default", rule: "job-lock:*",
			program: javaLibrary("ConformanceShedLockSpring", "shedlock-spring"), skips: tasks},
		{library: "ShedLock", version: "7.10.1", failedNode: "RedisSystemException", variant: "redis-spring, safeUpdate", selects: "safe", rule: "job-lock:*",
			program: javaLibrary("ConformanceShedLockSpring", "shedlock-spring"), skips: tasks},
	})
}

// javaLibrary has Maven fetch a profile's dependencies and compiles the program with them.
func javaLibrary(class, profile string) func(*testing.T) clientProgram {
	return func(t *testing.T) clientProgram {
		t.Helper()
		rig.Need(t, rig.Java, rig.Maven)
		sources, err := filepath.Glob("clients/java/Conformance*.java")
		if err != nil {
			t.Fatal(err)
		}
		pom, source := absolute(t, "clients/java/pom-conformance.xml"), absolute(t, "clients/java/"+class+".java")
		jars := installed(t, "conformance "+profile, []string{pom}, func(dir string) error {
			goal := []string{"-q", "-B", "-f", pom, "-P", profile, "dependency:copy-dependencies", "-DoutputDirectory=" + dir}
			if install(dir, append([]string{"mvn", "-o"}, goal...)...) == nil {
				return nil // everything was fetched before
			}
			return fetch(t, dir, append([]string{"mvn"}, goal...)...)
		})
		classes := installed(t, class+" "+profile, append(sources, pom), func(dir string) error {
			return install(dir, "javac", "-nowarn", "-d", dir, "-sourcepath", filepath.Dir(source), "-cp", filepath.Join(jars, "*"), source)
		})
		path := classes + string(filepath.ListSeparator) + filepath.Join(jars, "*")
		return clientProgram{words: []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, class}}
	}
}
