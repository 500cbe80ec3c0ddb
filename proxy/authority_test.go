package proxy

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

// A testAuthority issues certificates, as files.
type testAuthority struct {
	t    *testing.T
	file string // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newTestAuthority(t *testing.T) *testAuthority {
	t.Helper()
	a := &testAuthority{t: t, file: filepath.Join(t.TempDir(), "ca.crt")}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "the test's authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.key = newTestKey(t)
	a.cert = a.sign(template, template, a.key, a.file)
	return a
}

func newTestKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *testAuthority) sign(template, parent *x509.Certificate, subject *ecdsa.PrivateKey, file string) *x509.Certificate {
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

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issued are the files of one certificate.
type issued struct {
	certFile, keyFile string
	serial            *big.Int
}

// issue makes a certificate for localhost that is good for so long, in new
// files, or in those that are given.
func (a *testAuthority) issue(good time.Duration, into ...issued) issued {
	a.t.Helper()
	dir := a.t.TempDir()
	files := issued{certFile: filepath.Join(dir, "x.crt"), keyFile: filepath.Join(dir, "x.key")}
	if len(into) > 0 {
		files = into[0]
	}
	key := newTestKey(a.t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	writePEM(a.t, files.keyFile, "PRIVATE KEY", der)
	files.serial = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "issued"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(good),
	}, a.cert, key, files.certFile).SerialNumber
	return files
}

func (i issued) load(t *testing.T) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(i.certFile, i.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func (a *testAuthority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}
