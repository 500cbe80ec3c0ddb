package redlock

// notices are what the Observer and the log are told, in order, once the
// roster's lock is free: a log that blocks, or an Observer that asks how the
// masters stand, must not hold up every vote.
type notices struct {
	waiting []func()
	telling bool // some goroutine is telling them
}

// later has, with mu held, something told by unlock.
func (r *roster) later(tell func()) { r.untold.waiting = append(r.untold.waiting, tell) }

// warn has, with mu held, something logged by unlock.
func (r *roster) warn(text string, fields ...any) {
	r.later(func() { r.log.Warn(text, fields...) })
}

// unlock gives mu back and tells what came up meanwhile, unless another goroutine
// is telling already, which then goes on with it.
func (r *roster) unlock() {
	defer r.mu.Unlock()
	if r.untold.telling {
		return
	}
	r.untold.telling = true
	defer func() { r.untold.telling = false }()
	for len(r.untold.waiting) > 0 {
		waiting := r.untold.waiting
		r.untold.waiting = nil
		r.tellFree(waiting)
	}
}

// tellFree tells with mu free, and has it again afterwards, also when who is told
// panics.
func (r *roster) tellFree(waiting []func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	for _, tell := range waiting {
		tell()
	}
}
