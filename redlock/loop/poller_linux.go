package loop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// An epoll asks the kernel which descriptors are ready. It is edge-triggered: the kernel tells
// each change once, so that reading, pausing and going on need no system call of their own.
type epoll struct {
	fd     int
	owner  *os.File // of fd, so that a late add cannot hit another descriptor
	waker  *os.File // an eventfd; a File, so that a late wake cannot hit another descriptor
	wakeFD int
	events [mostEvents]unix.EpollEvent
}

const watched = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

func newPoller() (poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	owner := os.NewFile(uintptr(fd), "epoll")
	// It is blocking so that Go's poller leaves it alone. A write blocks only after 2^64 wakes.
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		_ = owner.Close()
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &epoll{fd: fd, owner: owner, waker: os.NewFile(uintptr(event), "eventfd"), wakeFD: event}
	if err := p.add(event); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *epoll) close() {
	_ = p.owner.Close()
	_ = p.waker.Close()
}

// wake ends a wait. Nobody reads what it writes: an edge is told for each write.
func (p *epoll) wake() { _, _ = p.waker.Write(oneWake) }

var oneWake = binary.NativeEndian.AppendUint64(nil, 1)

// add has the kernel tell the news of a descriptor. It may fail if there are too many.
func (p *epoll) add(fd int) error {
	raw, err := p.owner.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(owned uintptr) {
		ev := unix.EpollEvent{Events: watched, Fd: int32(fd)}
		failed = unix.EpollCtl(int(owned), unix.EPOLL_CTL_ADD, fd, &ev)
	})
	if err != nil {
		return net.ErrClosed
	}
	return failed
}

// modify says whether the kernel tells when it takes more to send.
func (p *epoll) modify(fd int, out bool) error {
	ev := unix.EpollEvent{Events: watched, Fd: int32(fd)}
	if out {
		ev.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &ev)
}

// poll calls event for each descriptor with news, and returns how many there are. It waits for
// the first if wait is true.
func (p *epoll) poll(wait bool, event func(fd int, readable, writable, ending bool)) int {
	timeout := 0
	if wait {
		timeout = -1
	}
	n, err := unix.EpollWait(p.fd, p.events[:], timeout)
	if err != nil {
		if errors.Is(err, unix.EINTR) {
			return 0
		}
		panic(fmt.Sprintf("epoll_wait: %v", err)) // the descriptor is not ours any more
	}
	for i := range n {
		ev := &p.events[i]
		if fd := int(ev.Fd); fd != p.wakeFD {
			event(fd, ev.Events&unix.EPOLLIN != 0, ev.Events&unix.EPOLLOUT != 0, ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
		}
	}
	return n
}

// duplicate returns a second descriptor of the connection.
func duplicate(c net.Conn) (int, error) {
	owner, ok := c.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("%T has no descriptor: %w", c, errors.ErrUnsupported)
	}
	raw, err := owner.SyscallConn()
	if err != nil {
		return -1, err
	}
	dup := -1
	var failed error
	err = raw.Control(func(fd uintptr) { dup, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return -1, err
	}
	return dup, nil
}

func readDescriptor(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if err == nil {
			return n, nil
		}
		if err = translate(err); err != nil {
			return 0, err
		}
	}
}

func writeDescriptor(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Write(fd, p)
		if err == nil {
			return n, nil
		}
		if err = translate(err); err != nil {
			return 0, err
		}
	}
}

// translate returns nil for an interruption.
func translate(err error) error {
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case errors.Is(err, unix.EAGAIN):
		return errAgain
	}
	return err
}

func shutDescriptor(fd int)  { _ = unix.Shutdown(fd, unix.SHUT_WR) }
func closeDescriptor(fd int) { _ = unix.Close(fd) }
