package endpoint

import (
	"os"
	"path/filepath"
	"redlock-proxy/integration/testca"
	"strings"
	"testing"
	"time"
)

// Renewed files are shown to who comes next; while they are no good, or half
// written, the old ones are, and an operator is told.
func TestCertificatesAreRenewed(t *testing.T) {
	authority := testca.New(t)
	certificate := authority.Issue(30 * 24 * time.Hour)
	files, err := OpenTLS(TLSOptions{CertFile: certificate.CertFile, KeyFile: certificate.KeyFile})
	if err != nil {
		t.Fatal(err)
	}
	shown := func() string { return files.Config().Certificates[0].Leaf.SerialNumber.String() }
	first := shown()
	if first != certificate.Serial.String() {
		t.Fatal("another certificate is shown")
	}
	if err := files.Problem(time.Now()); err != nil {
		t.Errorf("a good certificate: %v", err)
	}
	renewed := authority.Issue(30*24*time.Hour, certificate).Serial.String()
	if shown() == renewed {
		t.Error("the files were read for a single handshake")
	}
	files.due.Store(0)
	if shown() != renewed {
		t.Error("the renewed certificate is not shown")
	}
	before := files.Config()
	files.due.Store(0)
	if files.Config() != before {
		t.Error("files that are as they were forget the sessions that may be resumed")
	}

	if err := os.WriteFile(certificate.CertFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	files.due.Store(0)
	if files.Problem(time.Now()) == nil {
		t.Fatal("the operator is not told")
	}
	if shown() != renewed {
		t.Error("a broken file is in use")
	}
	if text := files.Problem(time.Now()).Error(); !strings.Contains(text, "what was read before stays in use; renew the files: cert_file "+certificate.CertFile) {
		t.Error(text)
	}
	authority.Issue(time.Hour, certificate)
	files.due.Store(0)
	if err := files.Problem(time.Now()); err == nil || !strings.Contains(err.Error(), "; renew it") {
		t.Errorf("a certificate that expires soon: %v", err)
	}
	if err := files.Problem(time.Now().Add(2 * time.Hour)); !strings.Contains(err.Error(), "has expired at ") {
		t.Error(err)
	}
}

func TestTLSFilesMustFit(t *testing.T) {
	authority, other := testca.New(t), testca.New(t)
	one, two := authority.Issue(time.Hour), other.Issue(time.Hour)
	for _, options := range []TLSOptions{
		{CertFile: one.CertFile, KeyFile: two.KeyFile},
		{CertFile: one.KeyFile, KeyFile: one.KeyFile},
		{CACertFile: one.KeyFile},
		{CACertFile: filepath.Dir(one.KeyFile)},
	} {
		if _, err := OpenTLS(options); err == nil || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%+v: %v", options, err)
		}
	}
}
