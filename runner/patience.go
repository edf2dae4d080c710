package runner

import (
	"errors"
	"time"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// maxPatience bounds how long what a worker wants written is tried again, as on
// a full disk that somebody clears.
const maxPatience = 10 * time.Minute

// patience spaces the tries of one thing. The zero value has not failed yet.
type patience struct {
	began time.Time
	last  time.Duration
}

// over tells whether it has been tried for long enough.
func (p *patience) over() bool { return !p.began.IsZero() && time.Since(p.began) > maxPatience }

// pause is how long to wait before the next try.
func (p *patience) pause() time.Duration {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.last = min(max(2*p.last, 100*time.Millisecond), 5*time.Second)
	return p.last
}

func (p *patience) reset() { *p = patience{} }

// hopeless tells an error that trying again cannot mend.
func hopeless(err error) bool {
	var corrupt *journal.CorruptError
	var refused *refusal
	return errors.As(err, &refused) || errors.As(err, &corrupt) || errors.Is(err, study.ErrClosed) || errors.Is(err, study.ErrBadState) ||
		errors.Is(err, study.ErrNotFound) || errors.Is(err, study.ErrInvalid) || errors.Is(err, study.ErrTooLarge) ||
		errors.Is(err, journal.ErrReplaced) || errors.Is(err, journal.ErrHeadMissing) || errors.Is(err, journal.ErrDataMissing)
}

// refusal is the error of a claim that the trial or the study does not admit,
// whatever becomes of the journal.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// refused makes the error of a transaction's function a refusal. It is to be told from
// one of the storage by what Update returns: the function may have run before that.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err}
}
