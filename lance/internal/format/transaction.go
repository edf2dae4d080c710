package format

import (
	"fmt"

	"github.com/foldlog/foldlog/lance/internal/wire"
)

// Kind is the number of a transaction's operation.
type Kind int

// The operations that are known by name.
const (
	Append            Kind = 100
	Delete            Kind = 101
	Overwrite         Kind = 102
	CreateIndex       Kind = 103
	Rewrite           Kind = 104
	Merge             Kind = 105
	Restore           Kind = 106
	ReserveFragments  Kind = 107
	Update            Kind = 108
	Project           Kind = 109
	UpdateConfig      Kind = 110
	DataReplacement   Kind = 111
	UpdateMemWALState Kind = 112
)

var kindNames = map[Kind]string{
	Append: "append", Delete: "delete", Overwrite: "overwrite", CreateIndex: "create index", Rewrite: "rewrite",
	Merge: "merge", Restore: "restore", ReserveFragments: "reserve fragments", Update: "update", Project: "project",
	UpdateConfig: "update config", DataReplacement: "data replacement", UpdateMemWALState: "update mem wal state",
}

// String is the operation's name.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("operation %d", int(k))
}

// Compacted is how far the generations of a shard are merged into the base table.
type Compacted struct {
	Shard      UUID
	Generation uint64
}

// Group is one part of a rewrite: the fragments New hold the rows of Old.
type Group struct{ Old, New []Fragment }

// RewrittenIndex is an index that a rewrite replaced.
type RewrittenIndex struct {
	Old UUID
	New Index
}

// Transaction is what one version changed.
type Transaction struct {
	ReadVersion uint64
	UUID        string
	Kind        Kind

	// Fragments are those of an append or overwrite, the new ones of an update.
	Fragments []Fragment
	// Updated are fragments of a delete or update with more deleted rows, Removed
	// those that are gone.
	Updated []Fragment
	Removed []uint64
	// NewIndexes and RemovedIndexes are those of a create index.
	NewIndexes, RemovedIndexes []Index
	// Groups and Rewritten are those of a rewrite.
	Groups    []Group
	Rewritten []RewrittenIndex
	// Reserved is the number of fragment ids.
	Reserved uint64
	// Compacted is the merge progress of an update, or of an update of the state.
	Compacted []Compacted
	// Fields is the schema of an overwrite.
	Fields []Field
	// Predicate is the condition of a delete, for people.
	Predicate string
}

// ParseTransaction reads a Transaction message.
func ParseTransaction(b []byte) (*Transaction, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%w: transaction: %w", ErrCorrupt, err)
	}
	t := &Transaction{ReadVersion: fields.Uint(1)}
	id, _ := fields.Get(2)
	t.UUID = string(id.B)
	for f := range fields.All() {
		if f.Num < 100 || f.Num > 199 {
			continue
		}
		t.Kind = Kind(f.Num)
		op, err := wire.Parse(f.B)
		if err == nil {
			err = t.parse(op)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: transaction: %s: %w", ErrCorrupt, t.Kind, err)
		}
	}
	if t.Kind == 0 {
		return nil, fmt.Errorf("%w: transaction without an operation", ErrCorrupt)
	}
	return t, nil
}

func (t *Transaction) parse(op wire.Message) (err error) {
	switch t.Kind {
	case Append:
		t.Fragments, err = parseFragments(op, 1)
	case Delete:
		if t.Updated, err = parseFragments(op, 1); err == nil {
			t.Removed, err = op.AllUints(2)
		}
	case Update:
		if t.Updated, err = parseFragments(op, 2); err != nil {
			return err
		}
		if t.Removed, err = op.AllUints(1); err != nil {
			return err
		}
		if t.Fragments, err = parseFragments(op, 3); err == nil {
			t.Compacted, err = parseCompacted(op, 5)
		}
	case CreateIndex:
		if t.NewIndexes, err = parseIndexes(op, 1); err == nil {
			t.RemovedIndexes, err = parseIndexes(op, 2)
		}
	case Rewrite:
		err = t.parseRewrite(op)
	case ReserveFragments:
		t.Reserved = op.Uint(1)
	case UpdateMemWALState:
		t.Compacted, err = parseCompacted(op, 1)
	}
	return err
}

func (t *Transaction) parseRewrite(op wire.Message) error {
	old, err := parseFragments(op, 1)
	if err != nil {
		return err
	}
	if len(old) > 0 {
		t.Groups = append(t.Groups, Group{Old: old})
	}
	for f := range op.All() {
		if f.Num != 3 {
			continue
		}
		g, err := wire.Parse(f.B)
		if err != nil {
			return err
		}
		var group Group
		if group.Old, err = parseFragments(g, 1); err != nil {
			return err
		}
		if group.New, err = parseFragments(g, 2); err != nil {
			return err
		}
		if len(group.Old)+len(group.New) > 0 {
			t.Groups = append(t.Groups, group)
		}
	}
	return nil
}

func parseIndexes(op wire.Message, num int) (out []Index, err error) {
	out = room[Index](op, num, leastIndex)
	for f := range op.All() {
		if f.Num == num {
			x, err := parseIndex(f.B)
			if err != nil {
				return nil, err
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func parseCompacted(op wire.Message, num int) (out []Compacted, err error) {
	for f := range op.All() {
		if f.Num != num {
			continue
		}
		c, err := ParseCompacted(f.B)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// ParseCompacted reads a message of a shard's UUID and a generation.
func ParseCompacted(b []byte) (c Compacted, err error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return c, err
	}
	u, _ := fields.Get(1)
	if c.Shard, err = parseUUIDMessage(u.B); err != nil {
		return c, err
	}
	c.Generation = fields.Uint(2)
	return c, nil
}

// Message returns the message of a shard's UUID and a generation.
func (c Compacted) Message() []byte {
	return wire.Builder(nil).Bytes(1, c.Shard.Message()).Uint(2, c.Generation)
}

// Message returns the Transaction message.
func (t *Transaction) Message() []byte {
	return wire.Builder(nil).Uint(1, t.ReadVersion).String(2, t.UUID).Bytes(int(t.Kind), t.operation())
}

// FileName is the name of the transaction's file, relative to _transactions/.
func (t *Transaction) FileName() string { return fmt.Sprintf("%d-%s.txn", t.ReadVersion, t.UUID) }

func addFragments(m wire.Builder, num int, fs []Fragment) wire.Builder {
	for _, f := range fs {
		m = m.Bytes(num, f.Message())
	}
	return m
}

func (t *Transaction) operation() wire.Builder {
	m := wire.Builder(nil)
	switch t.Kind {
	case Append:
		return addFragments(m, 1, t.Fragments)
	case Delete:
		return addFragments(m, 1, t.Updated).Packed(2, t.Removed).String(3, t.Predicate)
	case Overwrite:
		m = addFragments(m, 1, t.Fragments)
		for _, f := range t.Fields {
			m = f.Append(m, 2)
		}
	case CreateIndex:
		for _, x := range t.NewIndexes {
			m = m.Bytes(1, x.Message())
		}
		for _, x := range t.RemovedIndexes {
			m = m.Bytes(2, x.Message())
		}
	case Rewrite:
		return t.rewrite()
	case ReserveFragments:
		return m.Uint(1, t.Reserved)
	case Update:
		m = addFragments(addFragments(m.Packed(1, t.Removed), 2, t.Updated), 3, t.Fragments)
		for _, c := range t.Compacted {
			m = m.Bytes(5, c.Message())
		}
	}
	return m
}

func (t *Transaction) rewrite() wire.Builder {
	m := wire.Builder(nil)
	for _, g := range t.Groups {
		m = m.Bytes(3, addFragments(addFragments(nil, 1, g.Old), 2, g.New))
	}
	for _, r := range t.Rewritten {
		x := wire.Builder(nil).Bytes(1, r.Old.Message()).Bytes(2, r.New.UUID.Message()).
			Bytes(3, wire.Any(r.New.DetailsURL, r.New.Details)).Uint(4, r.New.Version)
		for _, f := range r.New.FileMessages() {
			x = x.Bytes(5, f)
		}
		m = m.Bytes(4, x)
	}
	return m
}
