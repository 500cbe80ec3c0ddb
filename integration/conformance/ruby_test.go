package conformance

import (
	"slices"

	"redlock-proxy/integration/rig"
)

func init() {
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "redis-rb", long: true, variant: "by hand", program: interpreted("ruby", "clients/ruby/conformance_redis.rb", rig.Ruby, rig.RubyRedis)},
		{library: "commands of redlock (gem)", long: true, version: "2.0.6", variant: "on redis-rb",
			program: interpreted("ruby", "clients/ruby/conformance_redlock.rb", rig.Ruby, rig.RubyRedis)},
		{library: "commands of redis-mutex (gem)", long: true, version: "4.0.2", variant: "on redis-rb",
			program: interpreted("ruby", "clients/ruby/conformance_redis_mutex.rb", rig.Ruby, rig.RubyRedis), rule: "RedisMutex:lock:*",
			skips: map[string]string{"extend": "it cannot prolong a lock"}},
	})
}
