// Package config is the operator's configuration: the file, its values and limits, and
// the users of the proxy. It also compares a new file with the active one for a reload.
//
// # The file
//
// Load reads a file strictly. Config and the structs in it describe its keys: the tags
// of their fields name the keys, their ranges and the allowed words. One reader (yaml.go)
// walks structs and YAML together. The few values that are more than a struct or a
// single word are in keys.go. The mistakes that no single value shows are found in
// checks.go, tls.go and users.go. Demo is the configuration without a file. It also has
// the value of each key that a file leaves out.
//
// Load reports all mistakes in one Error. Each has its file, its line, its key and what
// is allowed. No error quotes a value that may be a password. Nothing here prints a
// password, with any verb or encoder.
//
// # What is active
//
// Settings are made from one configuration and never change. Active holds the current
// ones. A caller that loads them once for a command, or for one round, sees one
// configuration and not parts of two. PlanReload compares two configurations. It returns
// what a reload would change, or which keys need a restart. It asks no server.
//
// Hash shows an operator whether proxies agree. NewLogger makes the logger that the file
// asks for. Accounts are the users of one configuration. Limits are in the order in
// which they are shown (Table), and a LimitName is also the label of its metric.
//
// # Who owns what
//
// A Config belongs to its maker until it becomes active. After that nobody changes it.
// Only an Active has a mutex. Replace holds it while it runs change, and never across
// I/O. The package starts no goroutine. It knows nothing of sessions, masters or metrics.
package config
