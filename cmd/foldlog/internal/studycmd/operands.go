package studycmd

import (
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

// parseNumber reads the operand NUMBER.
func parseNumber(arg string) (uint64, error) {
	n, err := strconv.ParseUint(arg, 10, 64)
	if err != nil {
		return 0, cli.Usagef("NUMBER %q: trials are numbered from 0", strings.TrimSpace(arg))
	}
	return n, nil
}

// parseValues reads operands that are floats; nan, inf and -inf are some.
func parseValues(args []string) ([]float64, error) {
	values := make([]float64, len(args))
	for i, arg := range args {
		v, err := strconv.ParseFloat(strings.TrimSpace(arg), 64)
		if err != nil {
			return nil, cli.Usagef("VALUE %q is not a number; nan, inf and -inf are", strings.TrimSpace(arg))
		}
		values[i] = v
	}
	return values, nil
}

// checkCount refuses values that are not one per objective.
func checkCount(st *study.Study, values []float64) error {
	if want := len(st.Config.Directions); len(values) != want {
		return cli.Usagef("study %q wants %s (%s), not %d", st.Config.Name, cli.Plural(int64(want), "value"), studyview.Objectives(st), len(values))
	}
	return nil
}
