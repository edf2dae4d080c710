package datagencmd

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/objstore"
)

func TestOutagesAreToldToPeople(t *testing.T) {
	var lines []string
	o := outageTeller{note: func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}
	began := time.Now().Add(-time.Minute)
	failed := fmt.Errorf("append: %w", &objstore.Error{Op: "put", Key: "a/b", Err: fmt.Errorf("connection refused")})
	o.tell(datagen.Outage{Began: began, Err: failed})
	if count, waited := o.total(); count != 1 || waited < time.Minute {
		t.Errorf("during it %d of %v", count, waited)
	}
	o.tell(datagen.Outage{Began: began, Err: failed, Took: 12 * time.Second})
	if count, waited := o.total(); count != 1 || waited != 12*time.Second {
		t.Errorf("after it %d of %v", count, waited)
	}
	want := []string{"the storage fails, and is tried again for up to 1m0s: connection refused", "the storage is back after 12s"}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}
