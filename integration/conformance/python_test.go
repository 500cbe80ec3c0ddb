package conformance

import (
	"slices"
	"testing"

	"redlock-proxy/integration/rig"
)

func init() {
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "redis-py", version: "3.5.3", program: pythonLibrary("conformance_redis.py", "redis-3.5.3")},
		{library: "redis-py", version: "8.1.0", program: pythonLibrary("conformance_redis.py", "redis-8.1.0"), overValkey: true},
		{library: "redis-py", version: "8.1.0", variant: "replace_ttl", selects: "replace",
			program: pythonLibrary("conformance_redis.py", "redis-8.1.0")},
		{library: "redis-py", version: "8.1.0", variant: "without timeout", selects: "endless",
			program: pythonLibrary("conformance_redis.py", "redis-8.1.0"),
			skips: map[string]string{
				"extend": "what does not expire cannot be extended",
				"expiry": "the lock does not expire",
			}},
		{library: "redis-py", version: "8.1.0", variant: "asyncio",
			program: pythonLibrary("conformance_redis_asyncio.py", "redis-8.1.0")},

		{library: "django-redis", version: "7.0.0", rule: ":1:lock:*",
			program: pythonLibrary("conformance_django.py", "django-redis-7.0.0")},

		{library: "python-redis-lock", version: "4.0.1", overValkey: true,
			program: pythonLibrary("conformance_redis_lock.py", "python-redis-lock-4.0.1")},
		{library: "python-redis-lock", version: "4.0.1", variant: "auto_renewal", selects: "auto_renewal", renews: true,
			program: pythonLibrary("conformance_redis_lock.py", "python-redis-lock-4.0.1")},

		{library: "pottery", version: "3.0.1", rule: "redlock:*", failedNode: "QuorumIsImpossible",
			program: pythonLibrary("conformance_pottery.py", "pottery-3.0.1")},
		{library: "pottery", version: "3.0.1", variant: "asyncio", rule: "redlock:*", failedNode: "QuorumIsImpossible",
			program: pythonLibrary("conformance_pottery_asyncio.py", "pottery-3.0.1")},

		{library: "aioredlock", version: "0.7.3", swallowsErrors: true, program: pythonLibrary("conformance_aioredlock.py", "aioredlock-0.7.3")},
		{library: "aioredlock", version: "0.7.3", variant: "watchdog", selects: "watchdog", renews: true, swallowsErrors: true,
			program: pythonLibrary("conformance_aioredlock.py", "aioredlock-0.7.3")},

		{library: "redlock-py", version: "1.0.8", swallowsErrors: true, program: pythonLibrary("conformance_redlock.py", "redlock-py-1.0.8"),
			skips: map[string]string{
				"extend":     "it cannot prolong a lock",
				"inspection": "it cannot look at a lock",
			}},

		{library: "celery-once", version: "3.0.1", rule: "qo_*", program: pythonLibrary("conformance_celery_once.py", "celery-once-3.0.1"),
			skips: map[string]string{
				"extend":          "it cannot prolong a lock",
				"foreign release": "it deletes whatever lock there is",
				"inspection":      "it cannot look at a lock",
			}},

		{library: "celery-singleton", version: "0.3.1", rule: "SINGLETONLOCK_*", program: pythonLibrary("conformance_celery_singleton.py", "celery-singleton-0.3.1"),
			skips: map[string]string{
				"extend":          "it cannot prolong a lock",
				"foreign release": "it deletes whatever lock there is",
				"inspection":      "it cannot look at a lock",
				"waiting":         "a task is left out while its lock is held",
			}},

		{library: "sherlock", version: "0.4.1", program: pythonLibrary("conformance_sherlock.py", "sherlock-0.4.1")},
	})
}

// pythonLibrary installs the packages of a requirements file into a directory of their own.
func pythonLibrary(script, requirements string) func(*testing.T) clientProgram {
	return func(t *testing.T) clientProgram {
		t.Helper()
		rig.Need(t, rig.Python, rig.Pip)
		file := absolute(t, "clients/python/requirements/"+requirements+".txt")
		dir := installed(t, requirements, []string{file}, func(dir string) error {
			return fetch(t, dir, "python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", dir, "--requirement", file)
		})
		return clientProgram{
			words: []string{"python3", "-B", "clients/python/" + script},
			env:   []string{"PYTHONPATH=" + dir},
		}
	}
}
