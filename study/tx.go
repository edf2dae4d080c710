package study

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// Tx is a transaction of a [Storage]: one method per operation, named after
// its kind. Every method checks, applies the operation to what the transaction
// sees, and adds it to what will be published; an error means that this
// operation is not part of the transaction. What the methods are given may be
// reused after they return. A Tx is valid during the function that it was
// handed to.
type Tx struct {
	draft *Draft
	log   txLog
	buf   []byte
	// broken is why the log refused an operation that the draft has applied.
	// Nothing can follow that.
	broken error
}

// txLog is what a transaction writes to; [journal.Tx] is one.
type txLog interface {
	NextSeq() uint64
	AtMillis() uint64
	Worker() uint64
	Append(op []byte) error
}

// TrialRef is the identity of a trial that was created.
type TrialRef struct {
	// ID is journal-wide, Number the ordinal within the study.
	ID     TrialID
	Number uint64
}

// Snapshot is what the transaction sees: everything settled, what other
// callers queued before it, and its own operations so far.
func (tx *Tx) Snapshot() *Snapshot { return tx.draft.Snapshot() }

// Worker is the id that the operations of this transaction carry.
func (tx *Tx) Worker() uint64 { return tx.log.Worker() }

// AtMillis is the time that they carry, Unix milliseconds.
func (tx *Tx) AtMillis() uint64 { return tx.log.AtMillis() }

// do spells, applies and appends one operation.
func (tx *Tx) do(op Op) error {
	if tx.broken != nil {
		return tx.broken
	}
	b, err := AppendOp(tx.buf[:0], op)
	if err != nil {
		return err
	}
	tx.buf = b
	if err := tx.draft.Apply(tx.log.NextSeq(), tx.log.Worker(), tx.log.AtMillis(), op); err != nil {
		var refused *ReplayError
		if errors.As(err, &refused) {
			return fmt.Errorf("%s: %w", op.Kind(), refused.Err)
		}
		return err
	}
	if err := tx.log.Append(b); err != nil {
		tx.broken = fmt.Errorf("%s: %w", op.Kind(), err)
	}
	return tx.broken
}

// Apply publishes an operation that the fold accepts, without the narrower rules
// of the methods: a parameter may be replaced, a trial may complete without
// values, and identities must be the next ones. It is for what mirrors another
// program's store, whose rules it has checked itself; JSON values in it must be
// canonical.
func (tx *Tx) Apply(op Op) error { return tx.do(op) }

// end gives the outcome of the function that had the transaction.
func (tx *Tx) end(err error) error {
	if err == nil {
		err = tx.broken
	}
	return err
}

func (tx *Tx) study(id StudyID) (*Study, error) { return tx.draft.st.study(id) }

// open finds a raw trial that has not ended.
func (tx *Tx) open(id TrialID, what string) (*Trial, error) {
	t, err := tx.raw(id, what)
	if err == nil && t.State.Terminal() {
		return nil, &StateError{Trial: id, State: t.State, What: what}
	}
	return t, err
}

// raw finds a trial that raw operations may name.
func (tx *Tx) raw(id TrialID, what string) (*Trial, error) {
	t, err := tx.draft.st.trial(id)
	if err == nil && t.Managed {
		return nil, fmt.Errorf("%w: %s of trial %d, which is lifecycle-managed", ErrManaged, what, id)
	}
	return t, err
}

// canonical spells a JSON value as it is stored.
func canonical(raw []byte) ([]byte, error) { return serde.AppendPortable(nil, raw) }

func canonicalBlob(b *Blob) (Blob, error) {
	if b.Raw != nil {
		return Blob{}, fmt.Errorf("%w: state blob without kind, version and data", ErrInvalid)
	}
	data, err := canonical(b.Data)
	if err != nil {
		return Blob{}, fmt.Errorf("state blob %.80q: %w", b.Kind, err)
	}
	return Blob{Kind: b.Kind, Version: b.Version, Data: data}, nil
}

func optCanonicalBlob(b *Blob) (*Blob, error) {
	if b == nil {
		return nil, nil
	}
	c, err := canonicalBlob(b)
	return &c, err
}

// reservedPrefixes begin the keys that users may not set.
var reservedPrefixes = []string{"atune:", SystemPrefix}

// SystemPrefix begins the keys of attributes that are this program's own.
const SystemPrefix = "foldlog:"

// RequestField is a field that any operation may have beside its own: the request by
// which it was published, of a client that would know it again.
const RequestField = SystemPrefix + "request"

func checkUserKey(key string) error {
	for _, p := range reservedPrefixes {
		if strings.HasPrefix(key, p) {
			return fmt.Errorf("%w: %.80q begins with %q", ErrReserved, key, p)
		}
	}
	return nil
}

func checkSystemKey(key string) error {
	if !strings.HasPrefix(key, SystemPrefix) {
		return fmt.Errorf("%w: system attribute %.80q does not begin with %q", ErrInvalid, key, SystemPrefix)
	}
	return nil
}

// checkParams refuses parameters that are doubled, set already, or whose value
// is not of their distribution.
func checkParams(t *Trial, params []Param) error {
	for _, p := range params {
		if _, set := t.Param(p.Name); set {
			return fmt.Errorf("trial %d: parameter %.80q: %w", t.ID, p.Name, ErrExists)
		}
	}
	return checkDrawn(t.ID, params)
}

// cloneTemplate copies a template and puts its parameters in order.
func (tx *Tx) cloneTemplate(tpl *Template) (*Template, error) {
	if tpl == nil {
		return nil, nil
	}
	c := &Template{Fixed: slices.Clone(tpl.Fixed), Extra: slices.Clone(tpl.Extra)}
	slices.SortFunc(c.Fixed, func(a, b FixedParam) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(c.Fixed); i++ {
		if c.Fixed[i].Name == c.Fixed[i-1].Name {
			return nil, fmt.Errorf("%w: fixed parameter %.80q is there twice", ErrInvalid, c.Fixed[i].Name)
		}
	}
	if tpl.Parent != nil {
		if _, err := tx.draft.st.trial(*tpl.Parent); err != nil {
			return nil, fmt.Errorf("parent: %w", err)
		}
		parent := *tpl.Parent
		c.Parent = &parent
	}
	return c, nil
}

// next is the identity of the next trial of a study.
func (tx *Tx) next(s *Study) TrialRef {
	return TrialRef{ID: TrialID(tx.draft.st.trials.len()), Number: uint64(s.NumTrials())}
}
