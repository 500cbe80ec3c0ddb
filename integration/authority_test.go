package integration

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

// authority issues certificates, as files that servers and clients read.
type authority struct {
	file string // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.crt")}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "the suite's authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.key = newKey(t)
	a.cert = a.sign(t, template, template, a.key, a.file)
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

func (a *authority) sign(t testing.TB, template, parent *x509.Certificate, subject *ecdsa.PrivateKey, file string) *x509.Certificate {
	t.Helper()
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, subject.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, file, "CERTIFICATE", der)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// certificate is one that an authority issued.
type certificate struct{ certFile, keyFile string }

// issue makes a certificate for localhost.
func (a *authority) issue(t testing.TB) certificate {
	t.Helper()
	dir := t.TempDir()
	c := certificate{filepath.Join(dir, "x.crt"), filepath.Join(dir, "x.key")}
	a.renew(t, c)
	return c
}

// renew puts a new certificate into the files of an old one.
func (a *authority) renew(t testing.TB, c certificate) {
	t.Helper()
	key := newKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, c.keyFile, "PRIVATE KEY", der)
	a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "issued"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(60 * 24 * time.Hour),
	}, a.cert, key, c.certFile)
}

// config is a client's that shows the certificate.
func (a *authority) config(t testing.TB, shown certificate) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(shown.certFile, shown.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{pair}}
}
