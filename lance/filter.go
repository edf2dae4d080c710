package lance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Op is a comparison of a [Condition].
type Op int

// The comparisons. A null matches IsNull only; NaN counts as above every number.
const (
	Equal Op = iota
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
	// In holds if the column equals one of Values.
	In
	IsNull
	NotNull
	// Satisfies holds if Holds says so of a row. No index helps.
	Satisfies
)

var opNames = [...]string{"=", "!=", "<", "<=", ">", ">=", "IN", "IS NULL", "IS NOT NULL", "SATISFIES"}

// String is the comparison as SQL spells it.
func (o Op) String() string {
	if o < 0 || int(o) >= len(opNames) {
		return fmt.Sprintf("op %d", int(o))
	}
	return opNames[o]
}

// Condition compares a column with a value. Values are Go's bool, integers, floats,
// strings, []byte, time.Time for dates and timestamps, or Arrow's own.
type Condition struct {
	Column string
	Op     Op
	// Value is what to compare with; In takes Values instead.
	Value  any
	Values []any
	// Holds is asked by Satisfies about the rows of an array, nulls too, by several
	// goroutines if several scans run.
	Holds func(column arrow.Array, row int) bool
}

// String is the condition as SQL would spell it.
func (c Condition) String() string {
	switch c.Op {
	case IsNull, NotNull, Satisfies:
		return fmt.Sprintf("%s %s", c.Column, c.Op)
	case In:
		list := make([]string, len(c.Values))
		for i, v := range c.Values {
			list[i] = literal(v)
		}
		return fmt.Sprintf("%s IN (%s)", c.Column, strings.Join(list, ", "))
	}
	return fmt.Sprintf("%s %s %s", c.Column, c.Op, literal(c.Value))
}

// literal is a value as SQL spells it.
func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		return fmt.Sprintf("X'%X'", v)
	case time.Time:
		return v.UTC().Format("TIMESTAMP '2006-01-02 15:04:05.999999999'")
	}
	return fmt.Sprint(v)
}

// condition is a Condition whose values have been converted.
type condition struct {
	column string
	op     Op
	keys   []key
	set    map[key]bool // of In
	holds  func(arrow.Array, int) bool
}

// smallSet is up to how many values In compares one by one.
const smallSet = 8

func (d *Dataset) conditions(filter []Condition) ([]condition, error) {
	var out []condition
	for _, c := range filter {
		f, err := d.fieldByName(c.Column)
		if err != nil {
			return nil, fmt.Errorf("filter: %w", err)
		}
		t := d.schema.Field(d.schema.FieldIndices(f.Name)[0]).Type
		x := condition{column: c.Column, op: c.Op, holds: c.Holds}
		values := c.Values
		switch {
		case c.Op < Equal || c.Op > Satisfies:
			return nil, fmt.Errorf("filter: %s: no such comparison: %d", c.Column, c.Op)
		case c.Op == Satisfies && c.Holds == nil:
			return nil, fmt.Errorf("filter: %s: nothing to satisfy", c.Column)
		case c.Op == IsNull || c.Op == NotNull || c.Op == Satisfies:
			values = nil
		case c.Op != In:
			values = []any{c.Value}
		}
		for _, v := range values {
			k, err := keyOf(t, v)
			if err != nil {
				return nil, fmt.Errorf("filter: %s: %w", c.Column, err)
			}
			if k.some { // a comparison with null never holds
				x.keys = append(x.keys, k)
			}
		}
		if len(x.keys) > smallSet {
			x.set = make(map[key]bool, len(x.keys))
			for _, k := range x.keys {
				x.set[k] = true
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// keep drops from a selection the rows of an array that do not match.
func (c condition) keep(a arrow.Array, rows []int) ([]int, error) {
	if c.op == Satisfies {
		return slices.DeleteFunc(rows, func(i int) bool { return !c.holds(a, i) }), nil
	}
	col, err := keysOf(a)
	if err != nil {
		return nil, err
	}
	out := rows[:0]
	for _, i := range rows {
		if c.match(col, i) {
			out = append(out, i)
		}
	}
	return out, nil
}

func (c condition) match(col *keyColumn, i int) bool {
	null := col.arr.IsNull(i)
	switch {
	case c.op == IsNull || c.op == NotNull:
		return null == (c.op == IsNull)
	case null || len(c.keys) == 0:
		return false
	case c.set != nil:
		return c.set[col.at(i)]
	case c.op == In:
		for _, k := range c.keys {
			if col.compare(i, k) == 0 {
				return true
			}
		}
		return false
	}
	d := col.compare(i, c.keys[0])
	switch c.op {
	case Equal:
		return d == 0
	case NotEqual:
		return d != 0
	case Less:
		return d < 0
	case LessOrEqual:
		return d <= 0
	case Greater:
		return d > 0
	}
	return d >= 0
}

// lookupKeys returns the values that an index could look up, or nil.
func (c condition) lookupKeys() []key {
	if c.op == Equal || c.op == In {
		return c.keys
	}
	return nil
}
