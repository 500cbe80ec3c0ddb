// Package endpoint leads to one Redis server: by an address, over TLS, or through
// the Sentinels that know which server it is now.
//
// Parse reads a server's URL, with the password and the files that its options
// name. Dial opens a connection on which nothing was said yet. Options are
// settings for go-redis, where a server is asked something off the hot path;
// what a server answers there is checked before that library sees it
// (checkedreplies.go). Same and SameEntry compare two endpoints for a reload.
//
// # Secrets
//
// An error never quotes a URL or a value, for a part of a password may stand at
// the wrong place. A Secret and an Endpoint print without what must not be shown,
// with every verb and in every encoding.
//
// # TLS files
//
// A TLS reads its files when it is opened, which a reload of the configuration
// does, and every 30 s while handshakes use it. Files that are no good leave in
// use what was read before; Problem tells.
//
// # Sentinels
//
// All Sentinels are asked at once, within half a second, and the answer with the
// latest configuration counts once no others can outvote it. What the server
// itself answers to ROLE decides whether the connection is used. go-redis's own
// failover dialer promises less: it stays with whichever Sentinel answered first,
// so that one which was cut off leads to the master of before for as long as it
// answers; it asks under a lock, where other dials cannot give up; and it holds a
// subscription and a goroutine, which somebody would have to end at each reload.
//
// # Who owns what
//
// An Endpoint is a value and never changes. The Sentinels' last answer and a TLS
// are shared by its copies and may be used by any goroutine. The package starts
// no goroutine that outlives a call. It imports resp, which reads ROLE's reply,
// and nothing else of ours.
package endpoint
