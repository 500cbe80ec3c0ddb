package redlock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"redlock-proxy/redlock/roster"
)

// Why a master is away, for people: the error's own text without what is another
// at each redial, so that a cause is told once, and without passwords.

const (
	// maxCause bounds what a server's own words may take of a reason.
	maxCause = 200
)

// absence words why a connection could not be opened or has ended.
func absence(why error) string {
	if cause := causeOf(why); cause != "" {
		return roster.NotConnected + ": " + oneLine(cause, maxCause)
	}
	return roster.NotConnected
}

// causeOf is the text of the error that came first, without our port, which is
// another one at each redial.
func causeOf(why error) string {
	switch why := why.(type) {
	case nil:
		return ""
	case interface{ Unwrap() []error }:
		// The other side of a connection that has ended fails because it is closed.
		all := why.Unwrap()
		first := slices.IndexFunc(all, func(err error) bool { return !errors.Is(err, net.ErrClosed) })
		return causeOf(all[max(first, 0)])
	case *net.OpError:
		return causeOf(why.Err)
	case *os.SyscallError:
		return causeOf(why.Err)
	case *net.DNSError:
		if why.IsTimeout {
			return "lookup " + why.Name + ": i/o timeout"
		}
	case x509.CertificateInvalidError:
		why.Detail = "" // it says what time it is
		return strings.TrimSuffix(why.Error(), ": ")
	case *tls.CertificateVerificationError:
		return causeOf(why.Err)
	}
	switch why {
	case io.EOF:
		return "it has ended the connection"
	case context.DeadlineExceeded, net.ErrClosed:
		return "it did not answer in time"
	}
	return why.Error()
}

// oneLine is a foreign text without control characters, cut to so many bytes.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
