package objstore

import (
	"errors"
	"net/http"
	"testing"

	"github.com/minio/minio-go/v7"
)

// TestUnknownCredentialsAreDenied has the status that some servers answer with, by which
// the object might be missing.
func TestUnknownCredentialsAreDenied(t *testing.T) {
	for code, want := range map[string]error{
		"XAdminUserNotFound": ErrDenied, "InvalidAccessKeyId": ErrDenied, "ExpiredToken": ErrDenied,
		"NoSuchKey": ErrNotFound, "": ErrNotFound, "NoSuchBucket": ErrNoBucket,
	} {
		err := s3Cause(minio.ErrorResponse{Code: code, StatusCode: http.StatusNotFound})
		if !errors.Is(err, want) {
			t.Errorf("%q: %v", code, err)
		}
	}
}

func TestAClockThatIsOffIsToldApart(t *testing.T) {
	err := s3Cause(minio.ErrorResponse{Code: "RequestTimeTooSkewed", StatusCode: http.StatusForbidden})
	if !errors.Is(err, ErrClock) || !errors.Is(err, ErrDenied) || passing(err) {
		t.Errorf("%v", err)
	}
}
