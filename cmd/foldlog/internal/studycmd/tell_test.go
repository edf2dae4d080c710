package studycmd

import (
	"os"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// TestUncertainValuesAreRepeatedAsUncertain keeps an error from claiming that
// nothing was written when that cannot be told.
func TestUncertainValuesAreRepeatedAsUncertain(t *testing.T) {
	o := tellOptions{values: []float64{0.5, -2}}
	uncertain := o.keep(&journal.UncertainError{First: 1, Last: 2, Err: os.ErrClosed})
	if text := uncertain.Error(); !strings.HasSuffix(text, "; these values may not be recorded: 0.5 -2.0") {
		t.Errorf("got %q", text)
	}
	if text := o.keep(study.ErrFenced).Error(); text != "fenced; these values were not recorded: 0.5 -2.0" {
		t.Errorf("got %q", text)
	}
}
