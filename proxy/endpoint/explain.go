package endpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/redlock/resp"
)

// explained is an error in words for an operator.
type explained struct {
	error        // what happened
	words string // the same, with what to do
}

func (e explained) Error() string { return e.words }
func (e explained) Unwrap() error { return e.error }

// Explain returns err, the result of a question to the server, with what an operator can
// do about it. An error that says enough stays as it is.
func (e Endpoint) Explain(err error) error {
	if _, known := errors.AsType[explained](err); known {
		return err
	}
	if words := e.explain(err); words != "" {
		return explained{err, words}
	}
	return err
}

func (e Endpoint) explain(err error) string {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		text := strings.TrimSuffix(err.Error(), ".")
		switch code, _, _ := strings.Cut(answer.Error(), " "); code {
		case "NOAUTH":
			return text + "; set user and password in the server's URL"
		case "WRONGPASS":
			return text + "; correct user and password in the server's URL"
		}
		if text, found := strings.CutSuffix(text, " Are you sure your configuration is correct?"); found { // of AUTH
			return strings.TrimSuffix(text, ".") + "; take the password out of the server's URL, or set one there"
		}
		return ""
	}
	var malformed resp.MalformedError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &malformed):
		return err.Error() + "; what listens there is no Redis"
	case errors.As(err, &lookup):
		return "" // the name server is at fault
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		text := "it did not answer in time"
		if e.TLS != nil {
			text += "; perhaps it speaks no TLS, and its URL asks for TLS"
		}
		return text
	case e.TLS == nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return "it closed the connection; perhaps it speaks TLS, and its URL does not ask for TLS"
	}
	return ""
}
