//go:build unix

package pipefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/internal/proctest"
)

// scratchEnv tells a process of this test binary to make a folder and wait to be killed.
const scratchEnv = "FOLDLOG_PIPEFILE_SCRATCH"

func TestMain(m *testing.M) {
	proctest.Role(scratchEnv, func(string) error {
		s, err := newScratch()
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, "blob"), make([]byte, 1<<20), 0o600)
		}
		if err != nil {
			return err
		}
		fmt.Println(s.dir)
		select {}
	})
	os.Exit(m.Run())
}

// left are the names in the folder of temporary files.
func left(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(os.TempDir(), scratchName+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestWhatAKilledRunLeftIsRemovedByTheNext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	begin := func() (dir string, kill func()) {
		t.Helper()
		said := make(chan string, 1)
		cmd := proctest.Self(t.Context(), scratchEnv+"=1")
		ended, err := proctest.Start(cmd, func(line string) { said <- line })
		if err != nil {
			t.Fatal(err)
		}
		select {
		case dir = <-said:
		case err := <-ended:
			t.Fatal(err)
		}
		return dir, func() {
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	dead, kill := begin()
	kill()
	if _, err := os.Stat(dead); err != nil {
		t.Fatal(err)
	}
	living, end := begin() // and sweeps
	defer end()
	sweepScratch(os.TempDir())
	if got := strings.Join(left(t), " "); got != living+" "+living+lockSuffix {
		t.Errorf("left: %s, and %s lives", got, living)
	}
}

// TestNobodySweepsALivingFolder has folders made and swept at once.
func TestNobodySweepsALivingFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	done := make(chan struct{})
	var makers, sweepers sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					sweepScratch(os.TempDir())
				}
			}
		})
	}
	for range 4 {
		makers.Go(func() {
			for range 100 {
				s, err := newScratch()
				if err != nil {
					t.Error(err)
					return
				}
				file := filepath.Join(s.dir, "f")
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(file); err != nil {
					t.Error(err)
				}
				s.close()
			}
		})
	}
	makers.Wait()
	close(done)
	sweepers.Wait()
	if names := left(t); len(names) > 0 {
		t.Errorf("left: %s", names)
	}
}
