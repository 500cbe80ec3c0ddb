// Package integration holds tests, and what they need: the built binary between
// real redis-server processes and real, unmodified client libraries. It
// imports nothing of the product, so whatever it asserts is what a user of
// the binary can see on the wire.
//
// What is where:
//
//	main_test.go         needed programs, the binary, built once
//	child                a child process: its log, its signals, its exit code; the
//	                     bench uses it, too
//	patience_test.go     how long anything is waited for
//	redis_test.go        a redis-server that can be paused, killed and restarted
//	proxy_test.go        the proxy's configuration, readiness and clean stop
//	cluster_test.go      five masters, an upstream, a proxy, and what they hold
//	wire_test.go         raw bytes to and from a server; reply_test.go reads them
//	scenario_test.go     commands run on two servers, replies and end state compared
//	corpus_*_test.go     what lock libraries send, in own words
//	examples_*_test.go   every keyed command, with right and wrong arguments
//	differential_test.go proxy against plain Redis, byte for byte
//	pipeline_test.go     both servers in one pipeline, cut at every byte
//	exclusion_test.go, heldback_test.go, scripts_test.go, faults_test.go,
//	writeup_test.go, history_test.go
//	                     what the locks promise, with and without faults
//	campaign_*_test.go   many clients, three proxies and every fault at random, judged
//	                     by a register and by the history; clock_test.go, slowlink_test.go
//	                     are its clocks that jump and its links
//	sentinel_test.go, sentinelsplit_test.go
//	                     servers that Sentinels fail over
//	soak_*_test.go       clients of every kind, faults and reloads, and nothing of
//	                     them left in the proxies afterwards
//	migration_test.go    from one Redis to the proxies, with clients at work
//	rolling_test.go      every master and every proxy is restarted under load
//	laterelease_test.go  libraries that release what has expired and is another's by now
//	redisson_test.go     what Redisson's locks promise beyond all others
//	readme_test.go       the tests that the documents name exist, and what they link to
//	wakeup_test.go       waiting for a lock: messages, signal lists, invalidations
//	upstream_test.go     every command without lock keys, byte for byte
//	upstreamtrouble_test.go
//	                     an upstream that dies, hangs, loads or is demoted
//	handshake_*_test.go  clients of six languages, old and new versions, connect
//	                     and lock, with the upstream up and down
//	conformance_test.go  lock libraries of eight languages, each in a process of its
//	                     own, through every scenario, over Redis and over Valkey:
//	                     conformance_libraries_test.go and the files of each language
//	                     list them, conformance_scenarios_test.go says what they go
//	                     through, conformance_table_test.go writes the table of README.md here
//	conformance_handwritten_test.go, conformance_patterns_test.go
//	                     lock code that applications write by hand
//	deploy_test.go, deploy_systemd_test.go, deploy_metrics_test.go
//	                     what deploy/ has: files, configurations, alerts, dashboard;
//	                     manifests is a module of its own that judges the files
//	licences_test.go     the licences of what is linked
//	again.sh             what fetches anything, tried again
//	container.sh         the image, built and run without a container engine
//	tls_test.go, unixsocket_test.go
//	                     the same over TLS, with certificates of authority_test.go, and over sockets
//	leastrights_test.go  with what the handbook lets the proxy do on a master, and no more
//	users_test.go        users, their rights and secrets, taken away by a reload
//	clients_test.go      go-redis, redsync, redis-cli, phpredis, Jedis
//	bench                a command that measures speed, as ratios in one table
//
// No test skips: a program that is missing fails the suite. No timing is
// asserted; deadlines only bound how long a test waits before it gives up.
// The suite runs on Linux.
package integration
