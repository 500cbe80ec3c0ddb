package loop

import "errors"

// A poller waits for the news of descriptors. Only the loop uses it, except wake and add.
type poller interface {
	// poll calls event for each descriptor with news, and returns how many there are. It waits for
	// the first, or for wake, if wait is true.
	poll(wait bool, event func(fd int, readable, writable, ending bool)) int
	// wake ends a wait, or the next one.
	wake()
	// add has the news of a descriptor told.
	add(fd int) error
	// modify says whether it is told, too, that a descriptor takes more to send.
	modify(fd int, out bool) error
	close()
}

// A sleeper is a poller without descriptors, for systems without epoll and for a World. All its sockets are pumped or
// Simulated.
type sleeper struct{ sleep, wakeUp func() }

func newSleeper() sleeper {
	woken := make(chan struct{}, 1)
	return sleeper{func() { <-woken }, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}}
}

func (s sleeper) poll(wait bool, _ func(fd int, readable, writable, ending bool)) int {
	if wait {
		s.sleep()
	}
	return 0
}

func (s sleeper) wake()                  { s.wakeUp() }
func (s sleeper) add(int) error          { return errors.ErrUnsupported }
func (s sleeper) modify(int, bool) error { return errors.ErrUnsupported }
func (s sleeper) close()                 {}
