package datagen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/foldlog/foldlog/internal/serde"
)

// CanonicalJSON is the one spelling of a JSON value that the log holds: no white
// space, keys sorted by their bytes, numbers with the fewest digits that read back
// the same. What is not JSON, or has a key twice, is an error.
func CanonicalJSON(raw []byte) (json.RawMessage, error) {
	out, err := serde.AppendPortable(make([]byte, 0, len(raw)), raw)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Checksum is how a blob's digest is spelled (column payload_checksum): "sha256:"
// and the digest in hexadecimal.
func Checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// NewBlob is the reference of bytes that are to be written, which must not change
// until they are.
func NewBlob(b []byte) BlobRef {
	if b == nil {
		b = []byte{}
	}
	return BlobRef{Size: int64(len(b)), Checksum: Checksum(b), Bytes: b}
}
