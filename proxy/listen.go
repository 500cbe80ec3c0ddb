package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"redlock-proxy/proxy/config"
)

// listen opens an address of the configuration. key is its name in the file. With reuse other
// processes may listen there, too. An error says what the operator can do.
func listen(key, address string, reuse bool) (net.Listener, error) {
	network, open, other := "tcp", net.ListenConfig{}, "something else"
	if reuse {
		// The kernel does not move clients that come by Multipath TCP from one listener to another.
		open.SetMultipathTCP(false)
		open.Control, other = setReusePort, "something without reuse_port, or of another user,"
	}
	if path, ok := strings.CutPrefix(address, config.UnixPrefix); ok {
		network, address = "unix", path
	}
	listener, err := open.Listen(context.Background(), network, address)
	if network == "unix" && errors.Is(err, syscall.EADDRINUSE) && deadSocket(address) {
		os.Remove(address)
		listener, err = open.Listen(context.Background(), network, address)
	}
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: %s listens there already; stop it, or change %s in the configuration", address, other, key)
	case reuse && errors.Is(err, errors.ErrUnsupported):
		return nil, fmt.Errorf("cannot listen on %s: reuse_port needs Linux; leave it out", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: this user may not; use a port above 1023 or another path for %s", address, key)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("cannot listen on %s: this machine does not have that address; change %s in the configuration", address, key)
	}
	return nil, fmt.Errorf("cannot listen on %s (%s): %w", address, key, err)
}

// deadSocket reports whether path is a socket that a dead process has left behind. Only
// such a file may be removed.
func deadSocket(path string) bool {
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// listenAddress returns a listener's address as the configuration writes it.
func listenAddress(listener net.Listener) string {
	if listener.Addr().Network() == "unix" {
		return config.UnixPrefix + listener.Addr().String()
	}
	return listener.Addr().String()
}
