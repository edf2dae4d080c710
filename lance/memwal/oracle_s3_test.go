package memwal

import (
	"testing"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// inBucket is a place for a table "log" in a new bucket, and how the real library gets
// there.
func inBucket(t *testing.T) (s objstore.Store, dir string, storage map[string]string) {
	t.Helper()
	endpoint, bucket := s3test.Bucket(t)
	whole, err := objstore.OpenS3(objstore.S3Options{
		Endpoint: endpoint, Bucket: bucket, Region: s3test.Region, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
	})
	ok(t, err)
	return objstore.Prefix(whole, "tables/log.lance"), "s3://" + bucket + "/tables", map[string]string{
		"aws_endpoint": endpoint, "aws_region": s3test.Region, "allow_http": "true",
		"aws_access_key_id": s3test.AccessKey, "aws_secret_access_key": s3test.SecretKey,
	}
}

// TestTheRealLanceSharesOurBucket works on one table in a bucket from both sides.
func TestTheRealLanceSharesOurBucket(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there || !s3test.Running(t) {
		return
	}
	s, dir, storage := inBucket(t)
	table := newTable(t, s, lancetest.Schema)
	d, err := table.Base(t.Context())
	ok(t, err)
	d, err = d.Append(t.Context(), lance.Batches(lancetest.Batch(0, 600)))
	ok(t, err)
	_, err = d.CreateIndex(t.Context(), "id")
	ok(t, err)
	w := newWriter(t, table, manual)
	ok(t, w.Append(t.Context(), lancetest.Batch(600, 650)))
	all := sortedText(lancetest.Batch(0, 650))
	same(t, "the real library reads ours", all, realRows(t, real, lancetest.On(dir, "storage", storage)))
	real.Do(t, "append", lancetest.On(dir, "storage", storage, "rows", lancetest.WriteRows(t, lancetest.Batch(650, 700))), nil)
	all = sortedText(lancetest.Batch(0, 700))
	same(t, "we read what it appended", all, ourRows(t, s))
	real.Do(t, "optimize", lancetest.On(dir, "storage", storage), nil)
	same(t, "after its compaction", all, ourRows(t, s))
	_, err = w.Merge(t.Context())
	ok(t, err)
	d, err = table.Base(t.Context())
	ok(t, err)
	_, _, err = d.Compact(t.Context(), lance.CompactOptions{})
	ok(t, err)
	same(t, "after our merge and compaction", all, realRows(t, real, lancetest.On(dir, "storage", storage, "lsm", false)))
}

// TestWeReadTheBucketOfTheRealLance reads and goes on with a table that it made.
func TestWeReadTheBucketOfTheRealLance(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there || !s3test.Running(t) {
		return
	}
	for _, version := range []string{"", "2.0"} {
		s, dir, storage := inBucket(t)
		real.Do(t, "create", lancetest.On(dir, "storage", storage, "format", version, "rows", lancetest.WriteRows(t, lancetest.Batch(0, 500))), nil)
		real.Do(t, "index", lancetest.On(dir, "storage", storage, "column", "id"), nil)
		d, err := lance.Open(t.Context(), s, lance.OpenOptions{})
		ok(t, err)
		same(t, "its table", sortedText(lancetest.Batch(0, 500)), ourRows(t, s))
		_, err = d.Verify(t.Context(), func(err error) { t.Error(err) })
		ok(t, err)
		if version == "" {
			continue // its default is a format that we do not write
		}
		_, err = d.Append(t.Context(), lance.Batches(lancetest.Batch(500, 520)))
		ok(t, err)
		same(t, "with our rows", sortedText(lancetest.Batch(0, 520)), realRows(t, real, lancetest.On(dir, "storage", storage)))
	}
}
