// Package transparency tests that a client cannot tell the proxy from a plain Redis. It
// sends every command of the corpus, on lock keys and on others. It does so
// over Redis 7, over Valkey 9.1 and over servers of both kinds. It cuts pipelines at
// every byte, and sends what many libraries send from the first byte on (testdata/handshakes). It has an upstream that dies,
// hangs, loads its data or becomes a replica. A new command belongs in package corpus.
package transparency
