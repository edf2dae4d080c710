package projection

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/metrics"
)

func simple(from, to int) []byte {
	var b []byte
	if from == 0 {
		b = append(b, `{"ts_ms":1,"kind":"open","slug":"run","description":"","metadata":{}}`+"\n"...)
	}
	for i := from; i < to; i++ {
		b = fmt.Appendf(b, `{"ts_ms":%d,"step":%d,"kind":"metric","name":"loss","value":%d,"metadata":{}}`+"\n", i+2, i, i)
	}
	return b
}

// A stream that goes while the catalog is being written anew is not written, and stays gone.
func TestAStreamThatGoesDuringACompactionIsGone(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		w.append(name, simple(0, 10))
		w.update(name)
	}
	if err := w.store.Flush(); err != nil {
		t.Fatal(err)
	}
	list := []*stream{w.store.streams["a.jsonl"], w.store.streams["b.jsonl"]}
	w.store.Remove("a.jsonl")
	if err := w.store.catalog.rewrite(list, &w.store.names); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	if got := w.store.Paths(); !cmp.Equal(got, []string{"b.jsonl"}) {
		t.Errorf("%v", got)
	}
}

// What a compaction writes of a stream that is being written to belongs together, also if
// the server is killed right after it.
func TestACompactionOfABusyStreamIsWhole(t *testing.T) {
	w := newWorld(t)
	w.append("a.jsonl", simple(0, 10))
	w.update("a.jsonl")
	if err := w.store.Flush(); err != nil {
		t.Fatal(err)
	}
	w.append("a.jsonl", []byte(`{"ts_ms":50,"step":9,"kind":"annotation","annotation":"checkpoint /a","metadata":{"checkpoint":"/a"}}`+"\n"))
	w.update("a.jsonl")
	if err := w.store.compact(); err != nil {
		t.Fatal(err)
	}
	killed := w.store
	defer killed.Close()
	w.open()
	run := w.store.Run("run")
	outlines, err := w.store.Outlines(run)
	if err != nil || run.Marks != 1 || len(outlines[0].Outline.Marks) != 1 {
		t.Errorf("%d marks in the digest, %+v %v", run.Marks, outlines, err)
	}
}

// A line that is too long and has no end yet is no error, however the pieces fall.
func TestALineThatIsTooLongAndHasNoEndIsNoError(t *testing.T) {
	for _, long := range []int{metrics.MaxLine + 1, metrics.MaxLine + 2, metrics.MaxLine + readBytes/2, metrics.MaxLine + readBytes, 2*metrics.MaxLine + readBytes} {
		w := newWorld(t)
		w.append("a.jsonl", simple(0, 3))
		w.append("a.jsonl", bytes.Repeat([]byte("x"), long))
		w.update("a.jsonl")
		w.append("a.jsonl", append([]byte("\n"), simple(3, 5)...))
		w.update("a.jsonl")
		if run := w.store.Run("run"); run == nil || run.Events != 6 || run.Bad != 1 {
			t.Errorf("%d bytes: %+v", long, run)
		}
	}
}

// Whoever reads events passes over a line that is too long.
func TestEventsBehindALineThatIsTooLongAreRead(t *testing.T) {
	for _, long := range []int{metrics.MaxLine, metrics.MaxLine + 1, metrics.MaxLine + 2, 5 * metrics.MaxLine} {
		w := newWorld(t)
		text := append(simple(0, 3), strings.Repeat("x", long)+"\n"...)
		w.append("a.jsonl", append(text, simple(3, 5)...))
		w.update("a.jsonl")
		d := w.store.Digest("a.jsonl")
		var at, n int64
		for at < d.Bytes {
			next, err := w.store.Events(d, at, 1, func(*metrics.Event) { n++ })
			if err != nil || next <= at {
				t.Fatalf("a line of %d bytes: from %d to %d of %d: %v", long, at, next, d.Bytes, err)
			}
			at = next
		}
		if n != d.Events {
			t.Errorf("a line of %d bytes: %d events of %d", long, n, d.Events)
		}
	}
}

// failing is a file of which only a part can be read.
type failing struct {
	io.ReaderAt
	from int64
}

func (f failing) ReadAt(b []byte, at int64) (int, error) {
	if at >= f.from {
		return 0, syscall.EIO
	}
	n, err := f.ReaderAt.ReadAt(b[:min(int64(len(b)), f.from-at)], at)
	if err == nil && n < len(b) {
		err = syscall.EIO
	}
	return n, err
}

// What was read before a fault, and not published, is never stored beside what was.
func TestAFaultInTheMiddleOfReadingIsNotStored(t *testing.T) {
	w := newWorld(t)
	w.append("a.jsonl", simple(0, 10))
	w.update("a.jsonl")
	w.append("a.jsonl", simple(10, 20))
	all := append(simple(0, 10), simple(10, 20)...)
	st := w.store.streams["a.jsonl"]
	st.mu.Lock()
	err := st.advance(failing{bytes.NewReader(all), int64(len(all) - 100)}, int64(len(all)), int64(len(all)), 1)
	st.mu.Unlock()
	if !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	w.reopen()
	w.update("a.jsonl")
	if run := w.store.Run("run"); run.Events != 21 || run.Metrics != 20 || len(run.Streams) != 1 {
		t.Errorf("%+v", run.Digest)
	}
	outlines, err := w.store.Outlines(w.store.Run("run"))
	if err != nil || outlines[0].Outline.Events != 21 {
		t.Errorf("%+v %v", outlines, err)
	}
	w.compare(fold(t, all))
}

// Whoever reads a stream that is being made anew gets its points, not none.
func TestAStreamThatIsReadAnewIsNotEmpty(t *testing.T) {
	w := newWorld(t)
	w.append("a.jsonl", simple(0, 10))
	w.update("a.jsonl")
	st := w.store.streams["a.jsonl"]
	st.mu.Lock()
	st.restart()
	st.mu.Unlock()
	r, at, err := w.store.Read(w.store.Run("run"), []string{"loss"}, Query{})
	if err != nil || r[0] == nil || r[0].Total != 10 || at[0].Offset == 0 {
		t.Errorf("%+v %v %v", r, at, err)
	}
}

// Two who find a file gone, and it comes again between them, leave the stream that came.
func TestAStreamThatCameAgainIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	w.append("a.jsonl", simple(0, 10))
	w.update("a.jsonl")
	late := w.store.streams["a.jsonl"]
	if late.remove(late.isGone); w.store.Run("run") == nil {
		t.Fatal("the stream is there, and its run is gone")
	}
	if err := os.Remove(filepath.Join(w.root, "a.jsonl")); err != nil {
		t.Fatal(err)
	}
	w.update("a.jsonl")
	if len(w.store.Paths()) != 0 || w.store.Run("run") != nil {
		t.Fatal("the stream is not removed")
	}
	w.append("a.jsonl", simple(0, 5))
	w.update("a.jsonl")
	late.remove(late.isGone)
	if _, err := late.catchUp(); !errors.Is(err, errRemoved) {
		t.Error(err)
	}
	if run := w.store.Run("run"); run == nil || run.Metrics != 5 {
		t.Errorf("%+v", run)
	}
}

// Points whose file is lost are made anew.
func TestPointsThatAreLostAreMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.append("a.jsonl", simple(0, 20_000))
	w.update("a.jsonl")
	if err := w.store.Flush(); err != nil {
		t.Fatal(err)
	}
	read := func() int64 {
		r, _, err := w.store.Read(w.store.Run("run"), []string{"loss"}, Query{Points: 50, Ranged: true, From: 3, To: 19_000})
		if err != nil {
			t.Fatal(err)
		}
		return r[0].Total
	}
	before := read()
	if err := os.Remove(w.store.streams["a.jsonl"].pointsPath()); err != nil {
		t.Fatal(err)
	}
	if after := read(); after != before {
		t.Errorf("%d points of %d", after, before)
	}
}
