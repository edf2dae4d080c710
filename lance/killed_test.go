package lance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/objstore"
)

// committerEnv tells a process of this test binary to commit: which rows, and where.
const committerEnv = "FOLDLOG_LANCE_COMMITTER"

// place is a table in a bucket, and a range of rows that are one process's.
type place struct {
	Endpoint, Bucket string
	First            int
}

func (p place) store() (objstore.Store, error) {
	s, err := objstore.OpenS3(objstore.S3Options{
		Endpoint: p.Endpoint, Bucket: p.Bucket, Region: s3test.Region, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
		Attempts: 3, Backoff: 10 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	return objstore.Prefix(s, "tables/log.lance"), nil
}

// committer commits until it is killed, and says of each of its rows what it was told:
// "there", "gone", or "doubt".
func committer(text string) error {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	s, err := p.store()
	if err != nil {
		return err
	}
	ctx, held := context.Background(), 0
	for n := p.First; ; {
		d, err := OpenOrCreate(ctx, s, lancetest.Schema)
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		switch {
		case n%7 == 0:
			_, _, _ = d.Compact(ctx, CompactOptions{})
		case n%5 == 0 && held != 0:
			fmt.Println("doubt", held)
			_, err = d.Delete(ctx, []Condition{{Column: "seq", Op: Equal, Value: held}})
			tell(held, err, "gone", "there")
			held = 0
		default:
			if _, err = d.Append(ctx, Batches(lancetest.Batch(n, n+1))); err == nil {
				held = n
			}
			tell(n, err, "there", "gone")
		}
		n++
	}
}

func tell(n int, err error, done, undone string) {
	switch {
	case err == nil:
		fmt.Println(done, n)
	case errors.Is(err, objstore.ErrAmbiguous):
		fmt.Println("doubt", n)
	default:
		fmt.Println(undone, n)
	}
}

// committers are such processes, and what they said.
type committers struct {
	t     *testing.T
	at    place
	lives int

	mu    sync.Mutex
	rows  map[int]string
	lines int
}

func (c *committers) heard(line string) {
	var n int
	var word string
	if _, err := fmt.Sscan(line, &word, &n); err == nil {
		c.mu.Lock()
		c.rows[n] = word
		c.lines++
		c.mu.Unlock()
	}
}

// getOn waits until they have said something more, however slow the machine is.
func (c *committers) getOn() {
	said := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.lines
	}
	for before := said(); said() == before; time.Sleep(5 * time.Millisecond) {
	}
}

func (c *committers) told(word string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, is := range c.rows {
		if is == word {
			n++
		}
	}
	return n
}

// begin starts a process with rows of its own; stop kills it.
func (c *committers) begin() (stop func()) {
	c.t.Helper()
	c.lives++
	at := c.at
	at.First = c.lives * 10_000
	text, err := json.Marshal(at)
	ok(c.t, err)
	cmd := proctest.Self(c.t.Context(), committerEnv+"="+string(text))
	ended, err := proctest.Start(cmd, c.heard)
	ok(c.t, err)
	return func() {
		_ = cmd.Process.Kill()
		<-ended
	}
}

// TestSoakWhatWasToldOfCommitsOutlivesWriterAndServer kills processes that append, delete and
// compact in a bucket, and the S3 server under them, and then holds what they were told
// against the rows, which the real library reads alike.
func TestSoakWhatWasToldOfCommitsOutlivesWriterAndServer(t *testing.T) {
	if !s3test.Running(t) {
		return
	}
	random := rand.New(rand.NewPCG(proctest.Seed(t), 0))
	server, endpoint, bucket := s3test.NewMortal(t)
	c := &committers{t: t, at: place{Endpoint: endpoint, Bucket: bucket}, rows: map[int]string{}}
	stops := []func(){c.begin(), c.begin(), c.begin()}
	until := time.Now().Add(proctest.Lasts(t, 3*time.Second))
	for kills := 0; kills < 3 || time.Now().Before(until) || c.told("there") < 10; kills++ {
		c.getOn()
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond)
		if random.IntN(3) == 0 {
			server.Kill()
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			ok(t, server.Start())
			continue
		}
		i := random.IntN(len(stops))
		stops[i]()
		stops[i] = c.begin()
	}
	for _, stop := range stops {
		stop()
	}
	s, err := c.at.store()
	ok(t, err)
	d, err := Open(t.Context(), s, OpenOptions{})
	ok(t, err)
	c.judge(d)
	same(t, "verification", nil, faults(t, d))
	if real, there := lancetest.Real(t); there {
		storage := map[string]string{
			"aws_endpoint": endpoint, "aws_region": s3test.Region, "allow_http": "true",
			"aws_access_key_id": s3test.AccessKey, "aws_secret_access_key": s3test.SecretKey,
		}
		got := real.Rows(t, "scan", lancetest.On("s3://"+bucket+"/tables", "storage", storage))
		same(t, "the real library", sorted(collect(t, d.Scan(t.Context(), ScanOptions{}))), sorted(got))
	}
}

// judge holds what was told against the rows.
func (c *committers) judge(d *Dataset) {
	c.t.Helper()
	read := map[int]int{}
	for rec, err := range d.Scan(c.t.Context(), ScanOptions{Columns: []string{"seq"}}) {
		ok(c.t, err)
		for _, n := range rec.Column(0).(*array.Int64).Int64Values() {
			read[int(n)]++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var bad []string
	for n, is := range c.rows {
		if is == "there" && read[n] != 1 || is == "gone" && read[n] != 0 {
			bad = append(bad, fmt.Sprintf("row %d is %s and was read %d times", n, is, read[n]))
		}
	}
	for n, times := range read {
		if times > 1 {
			bad = append(bad, fmt.Sprintf("row %d was read %d times", n, times))
		}
	}
	if len(bad) > 0 {
		c.t.Errorf("after %d lives, version %d:\n%s", c.lives, d.Version(), strings.Join(bad, "\n"))
	}
	c.t.Logf("%d lives, version %d, %d rows", c.lives, d.Version(), len(read))
}
