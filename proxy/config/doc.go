// Package config is what an operator configures: the file, its values and limits,
// who may use the proxy, and what of a new file a running process can put in
// force.
//
// # The file
//
// Load reads a file strictly. Config and the structs in it are the description of
// its keys: the tags of their fields name the keys, their ranges and the words
// that are allowed. One reader (yaml.go) walks structs and YAML together, keys.go
// has the few values that are more than a struct or a single word, and checks.go,
// tls.go and users.go find what no single value shows. Demo is the configuration
// without a file, and has the value of each key that a file leaves out.
//
// Whatever is wrong is told in one Error, each mistake with its file, line and key
// and with what is allowed. No error quotes a value that may be a password, and
// nothing here prints one, with any verb or encoder.
//
// # What is in force
//
// Settings are made of one configuration and never change. Active holds those in
// force: whoever loads them once for a command, or for one round, sees one
// configuration and not parts of two. PlanReload compares two configurations and
// says what a reload would change, or which keys need a restart; it asks no server.
//
// Accounts are the users of one configuration. Limits are in the order in which
// they are shown (Table), and a LimitName is also the label of its metric.
//
// # Who owns what
//
// A Config belongs to whoever made it until it is put in force; from then on
// nobody changes it. Only an Active has a lock, which is held while Replace runs
// its change and never across I/O. The package starts no goroutine. It knows
// endpoint, route and wire, and nothing of sessions, masters or metrics.
package config
