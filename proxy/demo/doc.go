// Package demo prepares -demo, for trying the proxy out. It starts five masters and an
// upstream, each a real redis-server or valkey-server on a loopback port. A person may kill
// one of them and watch what happens. Where neither program is installed, the servers stay
// embedded.
//
// The servers keep nothing on disk. They end with end. On Linux the kernel kills them when
// this process ends in any other way, also by SIGKILL. Elsewhere they then stay, and a person
// must end them. A Ctrl-C at the terminal reaches only the proxy, so that it can drain.
//
// # Who owns what
//
// The caller of Prepare must call end, which waits for all processes and removes their folder.
// A goroutine for each server waits for its end and ends with it.
package demo
