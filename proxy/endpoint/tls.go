package endpoint

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

const (
	// tlsReadEvery is the interval at which files are read again. A renewed certificate is
	// shown that much later at most, even without a reload.
	tlsReadEvery = 30 * time.Second
	// expiresSoon is the remaining lifetime below which an operator is told that a
	// certificate was not renewed.
	expiresSoon = 7 * 24 * time.Hour
)

// TLSMark follows an address that speaks TLS.
const TLSMark = " (TLS)"

// TLSOptions name the files of one side and its demands on the other. They can be
// compared with ==.
type TLSOptions struct {
	CertFile, KeyFile string // our certificate; empty: none
	CACertFile        string // the authorities that may sign the other side's certificate
	AuthClients       string // for a listener: no, optional or yes, as in Redis
	ServerName        string // for a server: the name in its certificate
	SkipVerify        bool   // for a server: accept any certificate
}

// TLS is the TLS settings of one side. Its files may be renewed while they are in use.
// Any goroutine may use it.
type TLS struct {
	from TLSOptions
	made atomic.Pointer[tlsMade]
	due  atomic.Int64 // when to read the files again, in Unix nanoseconds
}

// tlsMade is the result of reading the files once.
type tlsMade struct {
	config  *tls.Config
	digest  [sha256.Size]byte // of the files
	expires time.Time         // of our certificate; zero if there is none
	problem error             // why later files are not in use
}

// OpenTLS reads the files. Its error is a TLSError, which names the option at fault.
func OpenTLS(options TLSOptions) (*TLS, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	f := &TLS{from: options}
	made, err := options.read(&tlsMade{})
	if err != nil {
		return nil, err
	}
	f.made.Store(made)
	f.due.Store(time.Now().Add(tlsReadEvery).UnixNano())
	return f, nil
}

// Options are the options given to OpenTLS.
func (f *TLS) Options() TLSOptions { return f.from }

// Expires is the time at which our certificate expires, or zero if there is none.
func (f *TLS) Expires() time.Time { return f.made.Load().expires }

// Config is for a handshake that begins now. Renewed files come into use here. If they
// are unusable, the old ones stay in use.
func (f *TLS) Config() *tls.Config {
	now := time.Now()
	if due := f.due.Load(); now.UnixNano() >= due && f.due.CompareAndSwap(due, now.Add(tlsReadEvery).UnixNano()) {
		made, err := f.from.read(f.made.Load())
		if err != nil {
			before := *f.made.Load()
			before.problem = err
			made = &before
		}
		f.made.Store(made)
	}
	return f.made.Load().config
}

// Problem tells an operator that renewed files are unusable, or that the certificate has
// expired or is about to.
func (f *TLS) Problem(now time.Time) error {
	f.Config()
	made := f.made.Load()
	switch {
	case made.problem != nil:
		return fmt.Errorf("what was read before stays in use; renew the files: %w", made.problem)
	case !made.expires.IsZero() && now.After(made.expires):
		return fmt.Errorf("the certificate in %s has expired at %s; renew it", f.from.CertFile, made.expires.UTC().Format(time.RFC3339))
	case !made.expires.IsZero() && now.Add(expiresSoon).After(made.expires):
		return fmt.Errorf("the certificate in %s expires at %s; renew it", f.from.CertFile, made.expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// read turns the files into settings for both sides, of which each uses its part. If the
// files did not change, it keeps the tls.Config: a new one would forget the sessions that
// clients may resume.
func (o TLSOptions) read(before *tlsMade) (*tlsMade, error) {
	var texts [3][]byte
	for i, file := range []struct{ option, path string }{{"cert_file", o.CertFile}, {"key_file", o.KeyFile}, {"ca_cert_file", o.CACertFile}} {
		if file.path == "" {
			continue
		}
		text, err := os.ReadFile(file.path)
		if err != nil {
			return nil, TLSError{file.option, fmt.Errorf("cannot be read: %w", err)}
		}
		texts[i] = text
	}
	digest := sha256.Sum256(bytes.Join(texts[:], []byte{0}))
	if before.config != nil && before.digest == digest {
		return &tlsMade{config: before.config, digest: digest, expires: before.expires}, nil
	}
	return o.make(texts[0], texts[1], texts[2], digest)
}

func (o TLSOptions) make(certificate, key, authorities []byte, digest [sha256.Size]byte) (*tlsMade, error) {
	m := &tlsMade{digest: digest}
	m.config = &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: o.ServerName, InsecureSkipVerify: o.SkipVerify,
		// Each client has its own upstream connection, and an abbreviated
		// handshake costs both ends a tenth.
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
		// A ticket would let a client in again without a look at its certificate.
		SessionTicketsDisabled: o.AuthClients == "optional" || o.AuthClients == "yes",
	}
	switch o.AuthClients {
	case "optional":
		m.config.ClientAuth = tls.VerifyClientCertIfGiven
	case "yes":
		m.config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if o.CACertFile != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authorities) {
			return nil, TLSError{"ca_cert_file", fmt.Errorf("%s holds no certificate in PEM", o.CACertFile)}
		}
		m.config.RootCAs, m.config.ClientCAs = pool, pool
	}
	if o.CertFile != "" {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, TLSError{"cert_file", fmt.Errorf("%s and the key in %s cannot be used: %w", o.CertFile, o.KeyFile, err)}
		}
		m.config.Certificates = []tls.Certificate{pair}
		m.expires = pair.Leaf.NotAfter
	}
	return m, nil
}

// TLSError is OpenTLS's error.
type TLSError struct {
	Option string // the option at fault
	Err    error
}

func (e TLSError) Error() string { return e.Option + " " + e.Err.Error() }
func (e TLSError) Unwrap() error { return e.Err }

// check finds options that do not fit together, before any file is read.
func (o TLSOptions) check() error {
	switch {
	case o.CertFile != "" && o.KeyFile == "":
		return TLSError{"cert_file", errors.New("needs key_file")}
	case o.KeyFile != "" && o.CertFile == "":
		return TLSError{"key_file", errors.New("needs cert_file")}
	}
	return nil
}
