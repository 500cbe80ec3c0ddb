//go:build !linux

package loop

import (
	"errors"
	"net"
)

// A poller does not exist without epoll. New says so, and nothing below is ever called.
type poller struct{}

func newPoller() (*poller, error) { return nil, errors.ErrUnsupported }

func (p *poller) close()                 {}
func (p *poller) wake()                  {}
func (p *poller) add(int) error          { return errors.ErrUnsupported }
func (p *poller) modify(int, bool) error { return errors.ErrUnsupported }

func (p *poller) poll(bool, func(fd int, readable, writable, ending bool)) int { return 0 }

func duplicate(net.Conn) (int, error)          { return -1, errors.ErrUnsupported }
func readDescriptor(int, []byte) (int, error)  { return 0, errors.ErrUnsupported }
func writeDescriptor(int, []byte) (int, error) { return 0, errors.ErrUnsupported }
func shutDescriptor(int)                       {}
func closeDescriptor(int)                      {}
