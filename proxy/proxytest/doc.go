// Package proxytest is what the tests of several rooms share: a real Redis
// server that ends with the test, an authority for certificates, and the bytes
// that a client may send with what has to come of them. It knows no room of the
// proxy.
package proxytest
