package conformance

import (
	"slices"
	"testing"

	"redlock-proxy/integration/rig"
)

func init() {
	const laravel = "laravel?database?laravel?cache?*" // "_" or "-" or ":", by the version
	notProlonged := map[string]string{"extend": "Laravel 8 cannot prolong a lock", "inspection": "Laravel 8 cannot look at a lock"}
	forced := map[string]string{"foreign release": "forceRelease asks for no owner"}
	for scenario, reason := range notProlonged {
		forced[scenario] = reason
	}
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "phpredis", variant: "by hand", selects: "phpredis", program: php("conformance_idiom.php")},
		{library: "predis", variant: "by hand", selects: "predis", program: php("conformance_idiom.php")},
		{library: "phpredis", variant: "sessions", selects: "sessions", program: php("conformance_session.php"),
			rule: "*_LOCK", swallowsErrors: true, upstreamKeys: []string{"PHPREDIS_SESSION:lock:*"},
			skips: map[string]string{
				"extend":     "a session's lock has one TTL",
				"inspection": "only a session that is written looks at its lock",
			}},

		{library: "Symfony Lock", variant: "over phpredis", selects: "phpredis", failedNode: "LockAcquiringException", program: php("conformance_symfony.php", rig.SymfonyLock), overValkey: true},
		{library: "Symfony Lock", variant: "over predis", selects: "predis", failedNode: "LockAcquiringException", program: php("conformance_symfony.php", rig.SymfonyLock)},

		{library: "Laravel cache lock", variant: "over phpredis", selects: "phpredis", program: php("conformance_illuminate.php", rig.LaravelCache, rig.LaravelRedis, rig.Laravel),
			rule: laravel, skips: notProlonged},
		{library: "Laravel cache lock", variant: "over predis", selects: "predis", program: php("conformance_illuminate.php", rig.LaravelCache, rig.LaravelRedis, rig.Laravel),
			rule: laravel, skips: notProlonged},
		{library: "Laravel cache lock", variant: "forceRelease", selects: "phpredis-force", program: php("conformance_illuminate.php", rig.LaravelCache, rig.LaravelRedis, rig.Laravel),
			rule: laravel, skips: forced},
	})
}

// php runs a program with Debian's PHP libraries.
func php(script string, needs ...rig.Program) func(*testing.T) clientProgram {
	return interpreted("php", "clients/php/"+script, append(needs, rig.PHP, rig.Phpredis, rig.Predis)...)
}
