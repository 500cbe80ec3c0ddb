// Package config is the operator's configuration: the file, its values and limits, and
// the users of the proxy. It also compares a new file with the active one for a reload.
//
// # The file
//
// table.go has a row for each key: its field, the value without it, what is allowed, what
// a reload does with it, and a sentence. Everything else about keys is made from the rows:
// reading (yaml.go, values.go), Demo, PlanReload, Show for -check, Hash, LimitNames, and in
// tests the handbook's table and the schema for editors. A new key needs a row, a field,
// and the code that uses the field.
//
// Load reads a file strictly. The few values that are more than a single value or a list
// are in keys.go. The mistakes that no single value shows are found in checks.go, tls.go
// and users.go. Demo is the configuration without a file. It also has the value of each
// key that a file leaves out.
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
// what a reload would change, or which keys need a restart. It asks no server, and does not
// judge whether the masters may change so.
//
// Hash shows an operator whether proxies agree. NewLogger makes the logger that the file
// asks for. Accounts are the users of one configuration. A LimitName is a limit's key and
// the label of its metric.
//
// # Who owns what
//
// A Config belongs to its maker until it becomes active. After that nobody changes it.
// Only an Active has a mutex. Replace holds it while it runs change, and never across
// I/O. The package starts no goroutine. It knows nothing of sessions, masters or metrics.
package config
