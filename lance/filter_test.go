package lance

import (
	"testing"
	"time"
)

func TestConditionsAreSpelledAsSQL(t *testing.T) {
	for want, c := range map[string]Condition{
		"a = 1":                 {Column: "a", Value: 1},
		"a != 'it''s'":          {Column: "a", Op: NotEqual, Value: "it's"},
		`a <= '"'`:              {Column: "a", Op: LessOrEqual, Value: `"`},
		"a IN ('b', 2.5, NULL)": {Column: "a", Op: In, Values: []any{"b", 2.5, nil}},
		"a > X'00FF'":           {Column: "a", Op: Greater, Value: []byte{0, 255}},
		"a IS NOT NULL":         {Column: "a", Op: NotNull},
		"a >= TIMESTAMP '2026-01-02 03:04:05.006'": {Column: "a", Op: GreaterOrEqual,
			Value: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)},
	} {
		if got := c.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
