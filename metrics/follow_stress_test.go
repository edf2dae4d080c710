package metrics

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foldlog/foldlog/internal/proctest"
)

// rewriter does to a stream's file whatever may be done to one between two looks. Each
// event that it writes has a step of its own.
type rewriter struct {
	t     *testing.T
	rand  *rand.Rand
	path  string
	steps int
}

// lines are the next events, some of them long.
func (r *rewriter) lines(n int) string {
	var b strings.Builder
	for range n {
		r.steps++
		fmt.Fprintf(&b, `{"ts_ms":1,"step":%d,"kind":"metric","name":"l","value":1,"metadata":{"x":%q}}`+"\n", r.steps, strings.Repeat(fmt.Sprint(r.steps, " "), r.rand.IntN(1+r.rand.IntN(100))))
	}
	return b.String()
}

// begin is what every file begins with, so that no beginning tells one from another.
func (r *rewriter) begin() string {
	return `{"ts_ms":1,"step":0,"kind":"open","slug":"r","metadata":{"notes":"` + strings.Repeat("same", 80) + `"}}` + "\n"
}

func (r *rewriter) text() string { return r.begin() + r.lines(r.rand.IntN(30)) }

func (r *rewriter) read() string {
	b, err := os.ReadFile(r.path)
	if !os.IsNotExist(err) {
		must(r.t, err)
	}
	return string(b)
}

func (r *rewriter) replace(text string) {
	must(r.t, os.WriteFile(r.path+".new", []byte(text), 0o644))
	must(r.t, os.Rename(r.path+".new", r.path))
}

func (r *rewriter) overwrite(text string) { must(r.t, os.WriteFile(r.path, []byte(text), 0o644)) }

func (r *rewriter) do() string {
	old := r.read()
	if old == "" {
		r.overwrite(r.text())
		return "written"
	}
	cut := r.rand.IntN(len(old) + 1)
	switch r.rand.IntN(12) {
	case 0:
		r.overwrite(r.text())
		return "overwritten by another"
	case 1:
		r.replace(r.text())
		return "replaced by another"
	case 2:
		r.replace(old + r.lines(3))
		return "replaced by a longer copy"
	case 3:
		r.replace(old[:cut])
		return "replaced by a shorter copy"
	case 4:
		must(r.t, os.Truncate(r.path, int64(cut)))
		return "cut"
	case 5:
		r.overwrite(old[:strings.LastIndexByte(old[:cut], '\n')+1] + r.lines(r.rand.IntN(6)))
		return "written anew from some line on"
	case 6:
		must(r.t, os.Rename(r.path, r.path+".away"))
		must(r.t, os.Rename(r.path+".away", r.path))
		return "moved away and back"
	case 7:
		f, err := os.OpenFile(r.path, os.O_WRONLY, 0)
		must(r.t, err)
		must(r.t, f.Truncate(0))
		_, err = f.WriteAt([]byte("\n"+r.lines(2)), int64(len(old)))
		must(r.t, err)
		must(r.t, f.Close())
		return "emptied under a writer that goes on where it was"
	case 8:
		must(r.t, os.Remove(r.path))
		r.overwrite(r.text())
		return "removed and made anew"
	default:
		more := r.lines(1 + r.rand.IntN(4))
		if cut := len(more) - r.rand.IntN(20); r.rand.IntN(3) == 0 {
			more = more[:cut]
		}
		if !strings.HasSuffix(old, "\n") && r.rand.IntN(2) == 0 {
			more = "\n" + more
		}
		r.overwrite(old + more)
		return "grown"
	}
}

// stepAt is an event and where its line begins.
type stepAt struct{ Offset, Step int64 }

// taker takes events, and gives back those that are said to count no more.
type taker []stepAt

func (k *taker) take(it *Item) {
	switch {
	case it.Kind == ItemRewritten:
		*k = slices.DeleteFunc(*k, func(e stepAt) bool { return e.Offset >= it.Offset })
	case it.Kind == ItemEvent:
		*k = append(*k, stepAt{it.Offset, it.Event.Step})
	}
}

// TestAFollowerHasWhatTheFileHasWhateverIsDoneToIt looks after every one or two of many
// changes: what was handed over is what a reader of the whole file finds, no event lost, none
// doubled and none invented.
func TestAFollowerHasWhatTheFileHasWhateverIsDoneToIt(t *testing.T) {
	seed := proctest.Seed(t)
	for round := range 15 {
		r := &rewriter{t: t, rand: rand.New(rand.NewPCG(seed, uint64(round))), path: t.TempDir() + "/run.jsonl"}
		follower := NewFollower(r.path)
		var got taker
		var did []string
		for range 30 {
			for range 1 + r.rand.IntN(2) {
				did = append(did, r.do())
			}
			must(t, follower.Poll(got.take))
			var want taker
			whole := streamReader{handle: want.take}
			whole.write([]byte(r.read()))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("round %d, after: %s\n-want +got:\n%s", round, strings.Join(did, ", "), diff)
			}
		}
		must(t, follower.Close())
	}
}

func TestAFollowedFileThatIsWrittenAnewWithinATickIsNoticed(t *testing.T) {
	f := newTailer(t)
	f.add(steps(1, 2))
	f.expect("1:1", "2:2")
	info, err := os.Stat(f.path)
	must(t, err)
	f.write(steps(3, 4))
	must(t, os.Chtimes(f.path, info.ModTime(), info.ModTime()))
	f.expect("rewritten: overwritten", "1:3", "2:4")
}

// TestALongFileThatIsShortenedGoesOnAtALineThatIsKnown is about one of which not every line
// is remembered.
func TestALongFileThatIsShortenedGoesOnAtALineThatIsKnown(t *testing.T) {
	f := newTailer(t)
	const all = 20_000
	var (
		text strings.Builder
		ends []int64 // of lines
	)
	for i := range all {
		text.WriteString(steps(i+1, i+1))
		ends = append(ends, int64(text.Len()))
	}
	f.add(text.String())
	must(t, f.Poll(func(*Item) {}))
	length := ends[all-1] - ends[all-2]
	for _, kept := range []int{all - 1, all - 5, all / 2} {
		info, err := os.Stat(f.path)
		must(t, err)
		cut := ends[kept-1] + length/2 // in the middle of a line
		must(t, os.Truncate(f.path, cut))
		var got taker
		must(t, f.Poll(func(it *Item) {
			if it.Kind == ItemRewritten && it.Offset == 0 {
				t.Errorf("of %d bytes and %d nothing is known", info.Size(), cut)
			}
			got.take(it)
		}))
		for i, e := range got {
			if want := int64(kept - len(got) + i + 1); e.Step != want {
				t.Fatalf("step %d instead of %d", e.Step, want)
			}
		}
		if kept > all/2 && len(got) != 0 {
			t.Errorf("%d events come again although the end was read a moment ago", len(got))
		}
	}
	if n := len(f.known.marks); n > maxMarks {
		t.Errorf("%d lines are remembered", n)
	}
	f.add(steps(all/2+1, all/2+1)[length/2:])
	f.expect(fmt.Sprintf("%d:%d", all/2+1, all/2+1))
}

func TestWhatIsNoFileIsNotFollowed(t *testing.T) {
	f := newTailer(t)
	f.add(steps(1, 1))
	f.expect("1:1")
	aside := f.path + ".aside"
	for range 2 {
		must(t, os.Rename(f.path, aside))
		must(t, os.Mkdir(f.path, 0o755))
		if err := f.Poll(func(it *Item) { t.Errorf("%+v", it) }); !errors.Is(err, ErrNoFile) {
			t.Errorf("a directory: %v", err)
		}
		must(t, os.Remove(f.path))
		f.expect()
		must(t, os.Rename(aside, f.path))
		f.expect()
	}
	f.add(steps(2, 2))
	f.expect("2:2")
}
