package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/foldlog/foldlog/study"
)

const (
	// StateFile is the file in FOLDLOG_STATE_DIR whose JSON goes into the
	// journal when the trial is paused, and comes out of it again when the trial
	// goes on where the file is not.
	StateFile = "state.json"
	// MaxState is the largest [StateFile] that the journal takes, in bytes. Of
	// anything else the journal has the path.
	MaxState = 64 << 10

	// The kinds of the blobs: the JSON of the command, or {"path":..} of the
	// directory.
	stateKind     = "checkpoint"
	statePathKind = "checkpoint-path"
)

// openState makes the directory for a trial's checkpoints and puts back what
// the journal has.
func (a *attempt) openState() error {
	if a.State == "" {
		return nil
	}
	dir := absolute(filepath.Join(a.State, a.folder(), strconv.FormatUint(a.t.Number, 10)))
	err := os.MkdirAll(dir, 0o777)
	for i := 0; i < 3 && errors.Is(err, fs.ErrNotExist); i++ { // another run has just removed an empty parent
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	a.stateDir = dir
	if a.t.Blob == nil || a.t.Blob.Kind != stateKind {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, StateFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil // what lies there is as new or newer
	case err == nil:
		_, err = f.Write(append(a.t.Blob.Data, '\n'))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("restore state: %w", err)
	}
	return nil
}

// savedState is what the journal keeps of a trial that is paused, nil if the
// command saved nothing.
func (a *attempt) savedState() *study.Blob {
	if a.stateDir == "" {
		return nil
	}
	if b := readState(filepath.Join(a.stateDir, StateFile)); b != nil {
		return &study.Blob{Kind: stateKind, Version: 1, Data: b}
	}
	if entries, err := os.ReadDir(a.stateDir); err != nil || len(entries) == 0 {
		return nil
	}
	b, err := json.Marshal(map[string]string{"path": a.portable(a.stateDir)})
	if err != nil {
		return nil
	}
	return &study.Blob{Kind: statePathKind, Version: 1, Data: b}
}

// readState reads a file that the journal takes, nil if it does not.
func readState(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxState+1))
	if err != nil || len(b) > MaxState || !json.Valid(b) {
		return nil
	}
	return b
}

// tidyState removes the directories above if nothing was saved by any trial.
func (p *prepared) tidyState() {
	if p.State != "" && os.Remove(filepath.Join(p.State, p.folder())) == nil {
		os.Remove(p.State)
	}
}

// closeState removes the directory if nothing was saved.
func (a *attempt) closeState() {
	if a.stateDir != "" {
		os.Remove(a.stateDir) // refused unless it is empty
	}
}
