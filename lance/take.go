package lance

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/internal/parallel"
)

// ioWorkers is how many reads one call has under way at once.
const ioWorkers = 8

// each calls do for 0 to n-1, several at a time, and returns the first error.
func each(ctx context.Context, n int, do func(int) error) error {
	if err := parallel.Each(n, ioWorkers, do); err != nil {
		return err
	}
	return ctx.Err()
}

// Take reads rows by their addresses, in the order given, with ranged reads of those
// rows alone. Nil columns means all columns. An address that has no row in this
// version, or a deleted one, is an error.
func (d *Dataset) Take(ctx context.Context, addrs []uint64, columns []string) (arrow.RecordBatch, error) {
	schema, err := d.ScanSchema(ScanOptions{Columns: columns})
	if err != nil {
		return nil, fmt.Errorf("take: %w", err)
	}
	order := make([]int, len(addrs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(addrs[a], addrs[b]) })
	parts := make([][]arrow.Array, schema.NumFields())
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && addrs[order[j]]>>32 == addrs[order[i]]>>32 {
			j++
		}
		if err := d.takeFragment(ctx, schema, addrs, order[i:j], parts); err != nil {
			return nil, fmt.Errorf("take: %w", err)
		}
		i = j
	}
	cols := make([]arrow.Array, len(parts))
	back := make([]int, len(order))
	for at, i := range order {
		back[i] = at
	}
	for i := range parts {
		if len(parts[i]) == 0 {
			cols[i] = nulls(schema.Field(i).Type, 0)
			continue
		}
		all, err := array.Concatenate(parts[i], memory.DefaultAllocator)
		if err == nil {
			cols[i], err = pick(all, back)
		}
		if err != nil {
			return nil, fmt.Errorf("take: %w", err)
		}
	}
	return array.NewRecordBatch(schema, cols, int64(len(addrs))), nil
}

// maxTaken is how many bytes the values of a column may have that are taken at once from
// one place of a fragment.
const maxTaken = 1 << 30

// takeFragment reads the rows of one fragment, which order sorts by address; an
// address may come twice.
func (d *Dataset) takeFragment(ctx context.Context, schema *arrow.Schema, addrs []uint64, order []int, parts [][]arrow.Array) error {
	id := addrs[order[0]] >> 32
	frag := d.fragment(id)
	if frag == nil {
		return fmt.Errorf("version %d has no fragment %d", d.m.Version, id)
	}
	r, err := d.openFragment(ctx, *frag)
	if err != nil {
		return err
	}
	var rows []int64
	var repeat []int
	for _, i := range order {
		row := int64(addrs[i] & 0xffffffff)
		if row >= frag.Rows || r.deleted != nil && r.deleted.Contains(uint32(row)) {
			return fmt.Errorf("version %d has no row %d in fragment %d", d.m.Version, row, id)
		}
		if len(rows) == 0 || rows[len(rows)-1] != row {
			rows = append(rows, row)
		}
		repeat = append(repeat, len(rows)-1)
	}
	return each(ctx, schema.NumFields(), func(i int) error {
		c, err := r.column(schema.Field(i).Name)
		if err != nil {
			return err
		}
		a, err := c.readRows(ctx, rows, maxTaken)
		if err == nil && len(repeat) != len(rows) {
			a, err = pick(a, repeat)
		}
		parts[i] = append(parts[i], a)
		return err
	})
}
