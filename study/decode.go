package study

import (
	"fmt"
	"slices"

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
	mutateParams MutateParams
	mutateAttr   MutateUserAttr
	terminal     LifecycleTerminal
	outcome      []float64
	intent       Intent
	advance      OutboxAdvance
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
	var k *kind
	if inOrder {
		k = kindByName[string(d.s.Bytes())]
	} else if d.s.Err() == nil {
		k = d.findKind()
	}
	if err := d.s.Err(); err != nil {
		return nil, &DecodeError{Err: err}
	}
	if k == nil {
		return nil, &DecodeError{Err: d.noKind()}
	}
	op := k.read(d, inOrder)
	if err := d.s.End(); err != nil {
		return nil, &DecodeError{Kind: k.name, Err: err}
	}
	return op, nil
}

// findKind looks for the kind of an operation that does not begin with it, and
// moves back to the beginning.
func (d *Decoder) findKind() (k *kind) {
	d.s.Reset(d.raw)
	for d.s.Object(); d.s.NextKey(); {
		if k == nil && string(d.s.Key()) == "kind" {
			k = kindByName[string(d.s.Bytes())]
		} else {
			d.s.Skip()
		}
	}
	if d.s.Err() == nil {
		d.s.Reset(d.raw)
		d.s.Object()
	}
	return k
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

// kind is one row of the table of operations.
type kind struct {
	name string
	// read reads the fields after the opening brace; kindSeen tells that the
	// kind has been read already.
	read func(d *Decoder, kindSeen bool) Op
}

// kinds are the operations in the order of the document.
var kinds = []kind{
	{"create-study", (*Decoder).createStudy},
	{"create-trial", (*Decoder).createTrial},
	{"transition", (*Decoder).transition},
	{"params-batch", (*Decoder).paramsBatch},
	{"report", (*Decoder).report},
	{"set-values", (*Decoder).setValues},
	{"set-error", (*Decoder).setError},
	{"heartbeat", (*Decoder).heartbeat},
	{"set-study-user-attr", (*Decoder).studyAttr},
	{"set-trial-user-attr", (*Decoder).trialAttr},
	{"put-state", (*Decoder).putState},
	{"lifecycle-reserve", (*Decoder).reserve},
	{"lifecycle-abandon", (*Decoder).abandon},
	{"lifecycle-claim", (*Decoder).claim},
	{"lifecycle-renew", (*Decoder).renew},
	{"lifecycle-fail-stale", (*Decoder).failStale},
	{"lifecycle-fenced", (*Decoder).fenced},
	{"lifecycle-terminal", (*Decoder).terminal},
	{"outbox-advance", (*Decoder).outboxAdvance},
	{"outbox-effect-complete", (*Decoder).effectComplete},
	{"outbox-replacement", (*Decoder).replacement},
	{"lifecycle-finalized-state", (*Decoder).finalizedState},
}

var kindByName = func() map[string]*kind {
	m := make(map[string]*kind, len(kinds))
	for i := range kinds {
		m[kinds[i].name] = &kinds[i]
	}
	return m
}()

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
	keys  keySet // of extra
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
	if !t.keys.add(key) {
		d.s.Fail(fmt.Errorf("%w: %.80s is there twice", ErrField, key))
		return
	}
	t.extra = append(t.extra, Field{Key: key, Raw: string(d.s.Raw())})
}

// keySet tells whether keys come twice, however many there are.
type keySet struct {
	few  []string
	many map[string]struct{} // nil while a search is faster
}

// fewKeys is up to how many keys are searched.
const fewKeys = 16

// add reports whether the key is new.
func (k *keySet) add(key string) bool {
	if k.many == nil {
		if slices.Contains(k.few, key) {
			return false
		}
		if k.few = append(k.few, key); len(k.few) > fewKeys {
			k.many = make(map[string]struct{}, 2*fewKeys)
			for _, have := range k.few {
				k.many[have] = struct{}{}
			}
			k.few = nil
		}
		return true
	}
	before := len(k.many)
	k.many[key] = struct{}{}
	return len(k.many) > before
}
