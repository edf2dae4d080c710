package metricscmd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
)

// TestACertificateIsNoServerThatIsAway keeps a hint from asking to wait for a server
// that will never be trusted.
func TestACertificateIsNoServerThatIsAway(t *testing.T) {
	err := fmt.Errorf("post lines: %w: %w", metrics.ErrAway, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})
	if got := cli.HintFor(err, rules); !strings.Contains(got, "SSL_CERT_FILE") {
		t.Errorf("hint %q", got)
	}
}

func TestPatternsOfNames(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"loss", "loss", true}, {"loss", "losses", false}, {"*", "", true}, {"*/loss", "train/loss", true},
		{"*/loss", "train/losses", false}, {"a*b*c", "a--b--c", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"**", "x", true},
	} {
		if got := matchStars(tc.pattern, tc.name); got != tc.want {
			t.Errorf("%q matches %q: %v", tc.pattern, tc.name, got)
		}
	}
}
