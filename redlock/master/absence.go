package master

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

// This file words for people why a master is unreachable. It takes the error's own text
// without passwords, and without parts that change at each redial, so that each cause is
// logged once.

const (
	// maxCause bounds the bytes that a server's own words may take in a reason.
	maxCause = 200
)

// absence words why a connection could not be opened or has ended.
func absence(why error) string {
	if cause := causeOf(why); cause != "" {
		return roster.NotConnected + ": " + oneLine(cause, maxCause)
	}
	return roster.NotConnected
}

// causeOf returns the text of the error that came first. It leaves out our port, because
// the port changes at each redial.
func causeOf(why error) string {
	switch why := why.(type) {
	case nil:
		return ""
	case interface{ Unwrap() []error }:
		// After a connection has ended, its other direction fails with net.ErrClosed.
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
		why.Detail = "" // it contains the current time
		return strings.TrimSuffix(why.Error(), ": ")
	case *tls.CertificateVerificationError:
		return causeOf(why.Err)
	}
	switch why {
	case io.EOF:
		return "it closed the connection"
	case context.DeadlineExceeded, net.ErrClosed:
		return "it did not answer in time"
	}
	return why.Error()
}

// oneLine returns a foreign text without control characters, cut to at most most bytes.
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
