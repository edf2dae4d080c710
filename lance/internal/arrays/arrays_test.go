package arrays

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/format"
)

// TestRowsThatAreTooLongTogetherAreRefused: offsets of 32 bits would wrap around.
func TestRowsThatAreTooLongTogetherAreRefused(t *testing.T) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append(strings.Repeat("x", 1<<20))
	_, err := Pick(b.NewArray(), make([]int, 2048))
	var unsupported *format.UnsupportedError
	if !errors.As(err, &unsupported) {
		t.Errorf("error %v", err)
	}
}
