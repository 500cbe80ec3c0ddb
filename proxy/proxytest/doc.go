// Package proxytest holds what the tests of several packages share: a real Redis server
// that ends with the test, a certificate authority, a log that any goroutine may write
// to, and inputs that a client may send, with the expected results. It imports no
// other package of the proxy.
package proxytest
