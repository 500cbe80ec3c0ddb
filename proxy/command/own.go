package command

// ownCommand is REDLOCK with its subcommands, which the proxy answers itself. No server
// has it. Each subcommand is in the traits table, too. A subcommand that names a key
// names one, as its second argument.
func ownCommand() *Spec {
	container := newOwn("redlock", -2)
	for _, sub := range []*Spec{
		newOwn("redlock|break", 3, keySpec{index: 2, step: 1}),
		newOwn("redlock|clients", 2),
		newOwn("redlock|help", 2),
		newOwn("redlock|hot", 2),
		newOwn("redlock|locks", -2),
		newOwn("redlock|masters", 2),
		newOwn("redlock|rules", 2),
		newOwn("redlock|slowlog", -3),
		newOwn("redlock|status", 2),
		newOwn("redlock|token", 4, keySpec{index: 2, step: 1}),
		newOwn("redlock|unruled", 2),
		newOwn("redlock|why", 3, keySpec{index: 2, step: 1}),
	} {
		container.addSubcommand(sub)
	}
	return container
}

func newOwn(name string, arity int, keys ...keySpec) *Spec {
	return &Spec{Name: name, Arity: arity, flags: flagNoMulti, traits: traitsOf(name), keys: keys}
}
