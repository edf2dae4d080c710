package study

import (
	"fmt"

	"github.com/foldlog/foldlog/internal/serde"
)

// DecodeError is an operation that could not be read.
type DecodeError struct {
	// Kind is the operation's kind, empty if that could not be told.
	Kind string
	// Err is the reason: it wraps [ErrUnknownKind], [ErrField] or an error
	// of internal/serde with the byte offset.
	Err error
}

// Error implements error.
func (e *DecodeError) Error() string {
	if e.Kind == "" {
		return fmt.Sprintf("decode operation: %v", e.Err)
	}
	return fmt.Sprintf("decode %s: %v", e.Kind, e.Err)
}

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error { return e.Err }

// Decoder reads operations. It reuses one struct per kind and keeps parameter
// names and distributions that it has seen, so that reading the common
// operations allocates nothing. The zero value is ready; not for concurrent
// use.
type Decoder struct {
	s     serde.Scanner
	raw   []byte
	ops   scratch
	names map[string]string
	dists map[string]Distribution
}

// scratch holds what the last Decode returned.
type scratch struct {
	createTrial  CreateTrial
	transition   Transition
	paramsBatch  ParamsBatch
	report       Report
	setValues    SetValues
	setError     SetError
	heartbeat    Heartbeat
	studyAttr    SetStudyUserAttr
	trialAttr    SetTrialUserAttr
	putState     PutState
	reserve      LifecycleReserve
	claim        LifecycleClaim
	renew        LifecycleRenew
	fenced       LifecycleFenced
	mutateReport MutateReport
	terminal     LifecycleTerminal
}

// maxInterned bounds the memory of a decoder whatever it is fed.
const maxInterned = 1 << 14

// Decode reads one operation: the JSON object under the "op" key of a line.
// The result, and the slices in it, are valid until the next call and as long
// as raw does not change; a fold copies what it keeps. Fields may come in any
// order. The error is a [DecodeError].
func (d *Decoder) Decode(raw []byte) (Op, error) {
	d.raw = raw
	d.s.Reset(raw)
	d.s.Object()
	inOrder := d.s.NextKey() && string(d.s.Key()) == "kind"
	var kind string
	if inOrder {
		kind = kindName(d.s.Bytes())
	} else if d.s.Err() == nil {
		kind = d.findKind()
	}
	if err := d.s.Err(); err != nil {
		return nil, &DecodeError{Err: err}
	}
	if kind == "" {
		return nil, &DecodeError{Err: d.noKind()}
	}
	op := d.fields(kind, inOrder)
	if err := d.s.End(); err != nil {
		return nil, &DecodeError{Kind: kind, Err: err}
	}
	return op, nil
}

// findKind looks for the kind of an operation that does not begin with it, and
// moves back to the beginning.
func (d *Decoder) findKind() (kind string) {
	d.s.Reset(d.raw)
	for d.s.Object(); d.s.NextKey(); {
		if kind == "" && string(d.s.Key()) == "kind" {
			kind = kindName(d.s.Bytes())
		} else {
			d.s.Skip()
		}
	}
	if d.s.Err() == nil {
		d.s.Reset(d.raw)
		d.s.Object()
	}
	return kind
}

// noKind tells why there is none: the field is missing, or its value unknown.
func (d *Decoder) noKind() error {
	s := serde.NewScanner(d.raw)
	for s.Object(); s.NextKey(); {
		if string(s.Key()) == "kind" {
			return fmt.Errorf("%w: %.80q", ErrUnknownKind, s.Bytes())
		}
		s.Skip()
	}
	return fmt.Errorf("%w: kind is missing", ErrField)
}

// kindName returns the constant that equals b, or nothing.
func kindName(b []byte) string {
	switch string(b) {
	case "create-study":
		return "create-study"
	case "create-trial":
		return "create-trial"
	case "transition":
		return "transition"
	case "params-batch":
		return "params-batch"
	case "report":
		return "report"
	case "set-values":
		return "set-values"
	case "set-error":
		return "set-error"
	case "heartbeat":
		return "heartbeat"
	case "set-study-user-attr":
		return "set-study-user-attr"
	case "set-trial-user-attr":
		return "set-trial-user-attr"
	case "put-state":
		return "put-state"
	case "lifecycle-reserve":
		return "lifecycle-reserve"
	case "lifecycle-abandon":
		return "lifecycle-abandon"
	case "lifecycle-claim":
		return "lifecycle-claim"
	case "lifecycle-renew":
		return "lifecycle-renew"
	case "lifecycle-fail-stale":
		return "lifecycle-fail-stale"
	case "lifecycle-fenced":
		return "lifecycle-fenced"
	case "lifecycle-terminal":
		return "lifecycle-terminal"
	case "lifecycle-finalized-state":
		return "lifecycle-finalized-state"
	case "outbox-advance":
		return "outbox-advance"
	case "outbox-effect-complete":
		return "outbox-effect-complete"
	case "outbox-replacement":
		return "outbox-replacement"
	}
	return ""
}

// fields reads the rest of an operation.
func (d *Decoder) fields(kind string, kindSeen bool) Op {
	switch kind {
	case "report":
		return d.report(kindSeen)
	case "transition":
		return d.transition(kindSeen)
	case "create-trial":
		return d.createTrial(kindSeen)
	case "params-batch":
		return d.paramsBatch(kindSeen)
	case "set-values":
		return d.setValues(kindSeen)
	case "lifecycle-fenced":
		return d.fenced(kindSeen)
	case "lifecycle-renew":
		return d.renew(kindSeen)
	case "lifecycle-claim":
		return d.claim(kindSeen)
	case "lifecycle-terminal":
		return d.terminal(kindSeen)
	case "lifecycle-reserve":
		return d.reserve(kindSeen)
	case "heartbeat":
		return d.heartbeat(kindSeen)
	case "set-error":
		return d.setError(kindSeen)
	case "set-trial-user-attr":
		return d.trialAttr(kindSeen)
	case "set-study-user-attr":
		return d.studyAttr(kindSeen)
	case "put-state":
		return d.putState(kindSeen)
	case "create-study":
		return d.createStudy(kindSeen)
	case "lifecycle-abandon":
		return d.abandon(kindSeen)
	case "lifecycle-fail-stale":
		return d.failStale(kindSeen)
	case "lifecycle-finalized-state":
		return d.finalizedState(kindSeen)
	case "outbox-advance":
		return d.outboxAdvance(kindSeen)
	case "outbox-effect-complete":
		return d.effectComplete(kindSeen)
	default:
		return d.replacement(kindSeen)
	}
}

// fieldSet is the declared fields of one object, in order.
type fieldSet struct {
	names    []string
	required uint32
	op       bool
}

// opFields declares the fields of an operation; a question mark ends the
// optional ones.
func opFields(names ...string) *fieldSet {
	f := objectFields(names...)
	f.op = true
	return f
}

func objectFields(names ...string) *fieldSet {
	f := &fieldSet{names: names}
	for i, n := range names {
		if n[len(n)-1] == '?' {
			names[i] = n[:len(n)-1]
		} else {
			f.required |= 1 << i
		}
	}
	return f
}

const kindBit = 1 << 31

// tracker walks the fields of one object: known ones by their index, each once,
// unknown ones aside.
type tracker struct {
	set   *fieldSet
	seen  uint32
	field int
	extra []Field
}

func track(set *fieldSet, kindSeen bool) tracker {
	t := tracker{set: set, field: -1}
	if kindSeen {
		t.seen = kindBit
	}
	return t
}

// next moves to the next known field. At the end it checks that none is
// missing.
func (t *tracker) next(d *Decoder) bool {
	for d.s.NextKey() {
		key := d.s.Key()
		i := t.index(key)
		switch {
		case i >= 0 && t.seen&(1<<i) != 0:
			d.s.Fail(fmt.Errorf("%w: %s is there twice", ErrField, key))
			return false
		case i >= 0:
			t.seen |= 1 << i
			t.field = i
			return true
		case t.set.op && string(key) == "kind":
			if t.seen&kindBit != 0 {
				d.s.Fail(fmt.Errorf("%w: kind is there twice", ErrField))
				return false
			}
			t.seen |= kindBit
			d.s.Skip()
		default:
			t.keep(d, string(key))
		}
	}
	if missing := t.set.required &^ t.seen; missing != 0 && d.s.Err() == nil {
		for i, n := range t.set.names {
			if missing&(1<<i) != 0 {
				d.s.Fail(fmt.Errorf("%w: %s is missing", ErrField, n))
			}
		}
	}
	return false
}

// index finds a key, first of all where it is due.
func (t *tracker) index(key []byte) int {
	names := t.set.names
	if due := t.field + 1; due < len(names) && string(key) == names[due] {
		return due
	}
	for i, n := range names {
		if string(key) == n {
			return i
		}
	}
	return -1
}

func (t *tracker) keep(d *Decoder, key string) {
	for _, f := range t.extra {
		if f.Key == key {
			d.s.Fail(fmt.Errorf("%w: %.80s is there twice", ErrField, key))
			return
		}
	}
	t.extra = append(t.extra, Field{Key: key, Raw: string(d.s.Raw())})
}
