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
	// tlsReadEvery is how often files are read again, and so how late a renewed
	// certificate may be shown where nobody reloads the configuration.
	tlsReadEvery = 30 * time.Second
	// expiresSoon is when an operator is told that a certificate was not renewed.
	expiresSoon = 7 * 24 * time.Hour
)

// TLSMark stands behind an address at which TLS is spoken.
const TLSMark = " (TLS)"

// TLSOptions say where the files of one side are, and what the other is to
// show. Two that are equal mean the same.
type TLSOptions struct {
	CertFile, KeyFile string // what we show; empty: nothing
	CACertFile        string // by whose certificates the other is known
	AuthClients       string // of a listener: no, optional or yes, as Redis has it
	ServerName        string // of a server: the name in its certificate
	SkipVerify        bool   // of a server: believe anybody
}

// TLS is how one side speaks TLS, by files that may be renewed while they are in
// use. Any goroutine may ask for it at any time.
type TLS struct {
	from TLSOptions
	made atomic.Pointer[tlsMade]
	due  atomic.Int64 // when to read the files again, in Unix nanoseconds
}

// tlsMade is what the files gave at one time.
type tlsMade struct {
	config  *tls.Config
	digest  [sha256.Size]byte // of the files
	expires time.Time         // of the certificate we show; zero: none is
	problem error             // why files renewed since then are not in use
}

// OpenTLS reads the files, which all must be good. Its error names the option
// that is to blame (TLSError).
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

// Options are those that it was opened with.
func (f *TLS) Options() TLSOptions { return f.from }

// Expires is when the certificate that we show expires; zero: we show none.
func (f *TLS) Expires() time.Time { return f.made.Load().expires }

// Config is for a handshake that begins now. Files that were renewed come into
// use here; if they are no good, what they held before stays in use.
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

// Problem tells what an operator should know of the files: that renewed ones
// are no good, or that none were renewed in time.
func (f *TLS) Problem(now time.Time) error {
	f.Config()
	made := f.made.Load()
	switch {
	case made.problem != nil:
		return fmt.Errorf("what was read before stays in use: %w", made.problem)
	case !made.expires.IsZero() && now.After(made.expires):
		return fmt.Errorf("the certificate in %s has expired at %s", f.from.CertFile, made.expires.UTC().Format(time.RFC3339))
	case !made.expires.IsZero() && now.Add(expiresSoon).After(made.expires):
		return fmt.Errorf("the certificate in %s expires at %s; renew it", f.from.CertFile, made.expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// read makes of the files what both sides need; each uses its part. While the
// files stay as they were, so does what is made of them: a new tls.Config would
// forget the sessions that clients may resume.
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

// TLSError is an error of OpenTLS.
type TLSError struct {
	Option string // that names the file that is no good
	Err    error
}

func (e TLSError) Error() string { return e.Option + " " + e.Err.Error() }
func (e TLSError) Unwrap() error { return e.Err }

// check finds what does not fit together before any file is read.
func (o TLSOptions) check() error {
	switch {
	case o.CertFile != "" && o.KeyFile == "":
		return TLSError{"cert_file", errors.New("is there without key_file")}
	case o.KeyFile != "" && o.CertFile == "":
		return TLSError{"key_file", errors.New("is there without cert_file")}
	}
	return nil
}
