// Package rig has the building blocks of the suite's tests: the proxy's binary in front
// of real redis-servers, links that break, clocks that jump, and connections that
// exchange raw bytes. Only tests import it.
//
//	main.go     the programs that a room needs, and the binary, built once per machine
//	change.go   the binary with a change; step.go has one whose wall clock steps
//	server.go   a redis-server that can be paused, killed and restarted empty
//	proxy.go    the proxy's configuration, its start, readiness and clean stop
//	observe.go  the proxy's metrics and master states; reloads
//	cluster.go  five masters, an upstream, a proxy, and the contents of their keys
//	link.go     a link between a proxy and a server that is slow, loses bytes or breaks
//	network.go  a network of the test's own, which loses packets
//	disk.go     a server's own disk, which is full or gone
//	clock.go    a server's own clock, which jumps
//	wire.go     raw bytes to and from a server; value.go parses a reply,
//	            waiter.go has connections for tests that write out each reply
//	lock.go     acquire and release as a careful client does, and contention
//	cli.go      redis-cli
//	patience.go the time limit of every wait
//
// Nothing here imports the product. So a test can assert only what a user of the binary
// sees on the wire. No test asserts timing: Patience only bounds a test's waits. All of
// it runs on Linux.
//
// A room's tests begin with Main. They run in the folder integration.
package rig
