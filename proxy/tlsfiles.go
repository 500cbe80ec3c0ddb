package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tlsLookEvery is how often files are looked at for renewed ones at most,
	// and so how late a renewed certificate may be shown.
	tlsLookEvery = time.Second
	// expiresSoon is when an operator is told that a certificate was not renewed.
	expiresSoon = 7 * 24 * time.Hour
)

// tlsOptions say where the files of one side are, and what the other is to
// show. Two that are equal mean the same.
type tlsOptions struct {
	certFile, keyFile string // what we show; empty: nothing
	caCertFile        string // by whose certificates the other is known
	authClients       string // of a listener: no, optional or yes, as Redis has it
	serverName        string // of a server: the name in its certificate
	skipVerify        bool   // of a server: believe anybody
}

// tlsFiles are TLS settings made of files that may be renewed while they are
// in use. Any goroutine may ask for them at any time.
type tlsFiles struct {
	options tlsOptions
	made    atomic.Pointer[tlsMade]
	due     atomic.Int64 // when to look at the files again, in Unix nanoseconds
	looking sync.Mutex   // held, for a look at the files, by one at a time; nobody waits for it
}

// tlsMade is what the files gave at one time.
type tlsMade struct {
	config  *tls.Config
	stamps  [3]fileStamp
	expires time.Time // of the certificate we show; zero: none is
	problem error     // why files renewed since then are not in use
}

// fileStamp tells one state of a file from another.
type fileStamp struct {
	modified time.Time
	size     int64
	missing  bool
}

// openTLSFiles reads the files, which all must be good.
func openTLSFiles(options tlsOptions) (*tlsFiles, error) {
	f := &tlsFiles{options: options}
	made := &tlsMade{stamps: options.stamps()}
	if err := made.read(options); err != nil {
		return nil, err
	}
	f.made.Store(made)
	f.due.Store(time.Now().Add(tlsLookEvery).UnixNano())
	return f, nil
}

// config is for a handshake that begins now. Files that were renewed are read;
// if they are no good, what they held before stays in use.
func (f *tlsFiles) config() *tls.Config {
	now := time.Now()
	if now.UnixNano() >= f.due.Load() && f.looking.TryLock() {
		defer f.looking.Unlock()
		f.due.Store(now.Add(tlsLookEvery).UnixNano())
		if before := f.made.Load(); f.options.stamps() != before.stamps {
			f.made.Store(f.options.renew(before))
		}
	}
	return f.made.Load().config
}

// problem tells what an operator should know of the files: that renewed ones
// are no good, or that none were renewed in time.
func (f *tlsFiles) problem(now time.Time) error {
	f.config()
	made := f.made.Load()
	switch {
	case made.problem != nil:
		return fmt.Errorf("what was read before stays in use: %w", made.problem)
	case !made.expires.IsZero() && now.After(made.expires):
		return fmt.Errorf("the certificate in %s has expired at %s", f.options.certFile, made.expires.UTC().Format(time.RFC3339))
	case !made.expires.IsZero() && now.Add(expiresSoon).After(made.expires):
		return fmt.Errorf("the certificate in %s expires at %s; renew it", f.options.certFile, made.expires.UTC().Format(time.RFC3339))
	}
	return nil
}

func (o tlsOptions) renew(before *tlsMade) *tlsMade {
	made := &tlsMade{stamps: o.stamps()}
	if err := made.read(o); err != nil {
		made.config, made.expires, made.problem = before.config, before.expires, err
	}
	return made
}

func (o tlsOptions) stamps() (stamps [3]fileStamp) {
	for i, path := range []string{o.certFile, o.keyFile, o.caCertFile} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			stamps[i] = fileStamp{modified: info.ModTime(), size: info.Size()}
		} else {
			stamps[i].missing = true
		}
	}
	return stamps
}

// read makes of the files what both sides need; each uses its part.
func (m *tlsMade) read(o tlsOptions) error {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: o.serverName, InsecureSkipVerify: o.skipVerify,
		// Each client has its own upstream connection, and an abbreviated
		// handshake costs both ends a tenth.
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	if o.caCertFile != "" {
		text, err := os.ReadFile(o.caCertFile)
		if err != nil {
			return tlsFileError{"ca_cert_file", fmt.Errorf("cannot be read: %w", err)}
		}
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(text) {
			return tlsFileError{"ca_cert_file", fmt.Errorf("%s holds no certificate in PEM", o.caCertFile)}
		}
		config.RootCAs, config.ClientCAs = authorities, authorities
	}
	if o.certFile != "" {
		pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
		if err != nil {
			return tlsFileError{"cert_file", fmt.Errorf("%s and the key in %s cannot be used: %w", o.certFile, o.keyFile, err)}
		}
		config.Certificates = []tls.Certificate{pair}
		m.expires = pair.Leaf.NotAfter
	}
	// A ticket would let a client in again without a look at its certificate.
	config.SessionTicketsDisabled = o.authClients == "optional" || o.authClients == "yes"
	switch o.authClients {
	case "optional":
		config.ClientAuth = tls.VerifyClientCertIfGiven
	case "yes":
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	m.config = config
	return nil
}

// tlsFileError says which option names the file that is no good.
type tlsFileError struct {
	option string
	err    error
}

func (e tlsFileError) Error() string { return e.option + " " + e.err.Error() }
func (e tlsFileError) Unwrap() error { return e.err }

// check finds what does not fit together before any file is read. key is the
// option that it is about.
func (o tlsOptions) check() (key string, err error) {
	switch {
	case o.certFile != "" && o.keyFile == "":
		return "cert_file", errors.New("is there without key_file")
	case o.keyFile != "" && o.certFile == "":
		return "key_file", errors.New("is there without cert_file")
	}
	return "", nil
}
