package lance

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// comparing reports whether rows of one key are compared.
func (m *merger) comparing() bool { return m.spec.KeepExisting && len(m.spec.Differing) > 0 }

// compareAtOnce is how many rows of the table are read at once to be compared.
const compareAtOnce = 256

// digest stands for what a row says in the columns that are compared.
type digest [sha256.Size]byte

// compare finds rows that differ from others with the same key. It reads only the rows
// of keys that come twice; where all is well there are none.
func (m *merger) compare(ctx context.Context) error {
	m.differ, m.contested = map[int64]bool{}, map[string]bool{}
	if !m.comparing() || len(m.existing)+len(m.twice) == 0 {
		return nil
	}
	said := map[string]map[digest]bool{}
	for k := range m.twice {
		said[k] = map[digest]bool{}
	}
	var addrs []uint64
	for k, rows := range m.existing {
		said[k] = map[digest]bool{}
		addrs = append(addrs, rows...)
	}
	columns := slices.Clone(m.spec.Differing)
	if !slices.Contains(columns, m.spec.Key) {
		columns = append(columns, m.spec.Key)
	}
	for len(addrs) > 0 {
		n := min(len(addrs), compareAtOnce)
		rec, err := m.d.Take(ctx, addrs[:n], columns)
		if err != nil {
			return err
		}
		if _, err := m.say(rec, said, 0); err != nil {
			return err
		}
		addrs = addrs[n:]
	}
	return m.news(said)
}

// news reads the rows that are merged and keeps those of contested keys that say what
// none before them says.
func (m *merger) news(said map[string]map[digest]bool) error {
	row := int64(0)
	for rec, err := range m.spec.Rows {
		if err != nil {
			return err
		}
		fresh, err := m.say(rec, said, row)
		if err != nil {
			return err
		}
		for _, at := range fresh {
			m.differ[at] = true
		}
		row += rec.NumRows()
	}
	for k := range said {
		m.contested[k] = true
	}
	return nil
}

// say adds what the rows of a batch say, those of keys in said that are not deleted, and
// returns the numbers of the rows that said something new.
func (m *merger) say(rec arrow.RecordBatch, said map[string]map[digest]bool, from int64) (fresh []int64, err error) {
	keys, dead, err := m.keys(rec)
	if err != nil {
		return nil, err
	}
	var columns []*keyColumn
	for i := range int(rec.NumRows()) {
		k := keys.bytes(i)
		of := said[string(k)]
		if of == nil || m.last[string(k)].deleted || dead != nil && dead.IsValid(i) && dead.Value(i) {
			continue
		}
		if columns == nil {
			if columns, err = m.compared(rec); err != nil {
				return nil, err
			}
		}
		d := digestOf(columns, i)
		if !of[d] {
			of[d] = true
			fresh = append(fresh, from+int64(i))
		}
	}
	return fresh, nil
}

// compared are the columns of a batch that are compared; one that it lacks is null.
func (m *merger) compared(rec arrow.RecordBatch) ([]*keyColumn, error) {
	columns := make([]*keyColumn, len(m.spec.Differing))
	for i, name := range m.spec.Differing {
		at := rec.Schema().FieldIndices(name)
		if len(at) == 0 {
			continue
		}
		var err error
		if columns[i], err = keysOf(rec.Column(at[0])); err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
	}
	return columns, nil
}

func digestOf(columns []*keyColumn, row int) digest {
	var b []byte
	for _, c := range columns {
		switch {
		case c == nil || c.arr.IsNull(row):
			b = append(b, 0)
		case c.bytes != nil:
			v := c.bytes(row)
			b = append(binary.LittleEndian.AppendUint64(append(b, 1), uint64(len(v))), v...)
		default:
			b = binary.LittleEndian.AppendUint64(append(b, 2), c.num(row))
		}
	}
	return sha256.Sum256(b)
}
