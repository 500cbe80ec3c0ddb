//go:build !linux

package loop

import (
	"errors"
	"net"
)

func newPoller() (poller, error) { return newSleeper(), nil }

// There is no descriptor without epoll. So none of these is called, but duplicate.

func duplicate(net.Conn) (int, error)          { return -1, errors.ErrUnsupported }
func readDescriptor(int, []byte) (int, error)  { return 0, errors.ErrUnsupported }
func writeDescriptor(int, []byte) (int, error) { return 0, errors.ErrUnsupported }
func shutDescriptor(int)                       {}
func closeDescriptor(int)                      {}
