package logkind

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/objstore"
)

// datagenLog makes a log with some items, and returns its path.
func datagenLog(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	store, err := objstore.OpenLocal(root, objstore.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := datagen.Create(t.Context(), store, "p", "e", datagen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.NewWriter(t.Context(), datagen.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range []string{"a", "b", "c"} {
		s, err := w.Open(t.Context(), item, datagen.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Merge(t.Context(), datagen.MaintainOptions{All: true, Rate: -1}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, filepath.FromSlash(datagen.Path("p", "e")))
}

// progress is what a bar was told, which never goes back nor beyond its end.
type progress struct {
	t           *testing.T
	done, total int64
	calls       int
}

func (p *progress) set(done, total int64) {
	p.t.Helper()
	if done < p.done || done > total {
		p.t.Errorf("%d of %d after %d of %d", done, total, p.done, p.total)
	}
	p.done, p.total, p.calls = done, total, p.calls+1
}

func TestACopyTellsThatItIsChecked(t *testing.T) {
	log, bar := datagenLog(t), &progress{t: t}
	var stages []string
	atStage := map[string]int64{}
	opts := CopyOptions{Progress: bar.set, Stage: func(words string) {
		stages = append(stages, words)
		atStage[words] = bar.done
	}}
	done, err := datagenKind{}.Copy(t.Context(), log, filepath.Join(t.TempDir(), "copy.lance"), opts)
	if err != nil || done.Lost != nil || done.Events != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	files, items := "checking the files of the copy", "checking its items"
	if diff := cmp.Diff([]string{files, items}, stages); diff != "" {
		t.Error(diff)
	}
	if third := bar.total / 3; third == 0 || atStage[files] != third || atStage[items] <= third || bar.done <= 2*third {
		t.Errorf("of %d: %v, and %d at the end", bar.total, atStage, bar.done)
	}
}

func TestACheckTellsHowFarItIs(t *testing.T) {
	log := datagenLog(t)
	for _, kind := range []Kind{datagenKind{}, lanceKind{}} {
		bar := &progress{t: t}
		if v, err := kind.Verify(t.Context(), log, VerifyOptions{Progress: bar.set}); err != nil || len(v.Faults) > 0 {
			t.Fatalf("%s: %+v, %v", kind.Name(), v, err)
		}
		if bar.calls == 0 || bar.total == 0 {
			t.Errorf("%s: told %+v", kind.Name(), bar)
		}
	}
}

func TestAnErrorOfACopyNamesItsTarget(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "none", "copy.lance")
	_, err := datagenKind{}.Copy(t.Context(), datagenLog(t), dest, CopyOptions{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "create "+dest+": ") || strings.Contains(err.Error(), "foldlog-cp") {
		t.Errorf("got %v", err)
	}
}
