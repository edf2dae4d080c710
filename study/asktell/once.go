package asktell

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// ErrKeyUsed says that a trial was asked for with that key, and that it is not what is
// asked for now.
var ErrKeyUsed = errors.New("the key was used before")

// KeyError says what became of the trial that was asked for with a key. It is
// [ErrKeyUsed].
type KeyError struct {
	// Key is the caller's.
	Key string
	// Number is the trial's, and State its state.
	Number uint64
	State  study.State
}

// Error implements error.
func (e *KeyError) Error() string {
	if e.State == study.Running {
		return fmt.Sprintf("the key %.80q is of trial %d, which was not asked for in this way", e.Key, e.Number)
	}
	return fmt.Sprintf("the key %.80q is of trial %d, which is %s", e.Key, e.Number, e.State.Name())
}

// Is implements errors.Is.
func (e *KeyError) Is(target error) bool { return target == ErrKeyUsed }

// askedFor is the trial that was asked for with a key, nil if none was.
func askedFor(snap *study.Snapshot, id study.StudyID, key string) *study.Trial {
	value, err := keyValue(key)
	if key == "" || err != nil {
		return nil
	}
	return snap.AskedFor(id, value)
}

// again tells whether a trial answers who asks once more.
func again(t *study.Trial, o AskOptions) error {
	same := t.Managed == o.managed() && (!o.managed() || o.Worker == nil || *o.Worker == t.Owner)
	if t.State != study.Running || !same {
		return &KeyError{Key: o.Key, Number: t.Number, State: t.State}
	}
	return nil
}

// remember writes the key to a trial that has been started.
func remember(tx *study.Tx, id study.TrialID, key string) error {
	t, err := tx.Snapshot().Trial(id)
	if err != nil {
		return err
	}
	value, err := keyValue(key)
	if err != nil {
		return err
	}
	if t.Managed {
		return tx.LifecycleSystemAttr(t.Fence(), study.AskKeyAttr, value)
	}
	return tx.SetTrialSystemAttr(id, study.AskKeyAttr, value)
}

// keyValue spells a key as attributes are stored.
func keyValue(key string) ([]byte, error) {
	b, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	return serde.AppendPortable(nil, b)
}

// MaxKey is how long a key may be, in bytes.
const MaxKey = 1000

// checkKey refuses what cannot be written as it is.
func checkKey(key string) error {
	if len(key) > MaxKey || !utf8.ValidString(key) {
		return fmt.Errorf("%w: a key is text of %d bytes at most", study.ErrInvalid, MaxKey)
	}
	return nil
}
