package lance

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/foldlog/foldlog/lance/internal/arrays"
	"github.com/foldlog/foldlog/lance/internal/datafile"
)

var (
	pick  = arrays.Pick
	nulls = datafile.Nulls
)

// addresses makes a column of row addresses.
func addresses(fragment uint64, rows []int64) arrow.Array {
	b := make([]byte, 0, 8*len(rows))
	for _, r := range rows {
		b = binary.LittleEndian.AppendUint64(b, fragment<<32|uint64(r))
	}
	return array.NewUint64Data(array.NewData(arrow.PrimitiveTypes.Uint64, len(rows), []*memory.Buffer{nil, memory.NewBufferBytes(b)}, nil, 0, 0))
}
