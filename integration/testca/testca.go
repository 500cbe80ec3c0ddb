// Package testca issues certificates for tests. It knows nothing of the program, so the
// tests of every part may use it.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority that issues certificates as files.
type Authority struct {
	t    testing.TB
	File string // the file of its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority. Its files are removed when the test ends.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, File: filepath.Join(t.TempDir(), "ca.crt")}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "the test's authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.key = newKey(t)
	a.cert = a.sign(template, template, a.key, a.File)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *Authority) sign(template, parent *x509.Certificate, subject *ecdsa.PrivateKey, file string) *x509.Certificate {
	a.t.Helper()
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, subject.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, file, "CERTIFICATE", der)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Certificate names the files of a certificate and of its key.
type Certificate struct {
	CertFile, KeyFile string
	Serial            *big.Int
}

// Issue makes a certificate for localhost that is valid for this duration. It writes new
// files, or overwrites those of into, if that is given.
func (a *Authority) Issue(good time.Duration, into ...Certificate) Certificate {
	a.t.Helper()
	dir := a.t.TempDir()
	files := Certificate{CertFile: filepath.Join(dir, "x.crt"), KeyFile: filepath.Join(dir, "x.key")}
	if len(into) > 0 {
		files = into[0]
	}
	key := newKey(a.t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, files.KeyFile, "PRIVATE KEY", der)
	files.Serial = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "issued"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(good),
	}, a.cert, key, files.CertFile).SerialNumber
	return files
}

// Load reads the certificate and its key from their files.
func (c Certificate) Load(t testing.TB) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Pool returns a pool with the authority's certificate, for peers that trust it.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}
