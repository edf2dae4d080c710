package lance

import (
	"testing"

	"github.com/foldlog/foldlog/objstore"
)

// Two clean-ups at once: the other has removed a version that this one has listed.
func TestCleanUpBesideAnother(t *testing.T) {
	mem := objstore.NewMemory()
	filled(t, mem, 30, 10)
	store := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
		if c.Op == "get" && c.Key == manifestKey(2) {
			ok(t, mem.Delete(t.Context(), c.Key))
		}
		return objstore.Fate{}
	})
	d, err := Open(t.Context(), store, OpenOptions{})
	ok(t, err)
	_, err = d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
	ok(t, err)
	same(t, "rows", expect(0, 30), collect(t, d.Scan(t.Context(), ScanOptions{})))
	left, err := d.Versions(t.Context())
	ok(t, err)
	if len(left) != 1 {
		t.Errorf("left %+v", left)
	}
}
