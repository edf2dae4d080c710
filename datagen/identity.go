package datagen

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// oid is the namespace of object identifiers (RFC 9562, section 6.6).
var oid = [16]byte{0x6b, 0xa7, 0xb8, 0x12, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}

// EventID is the identity of an event: the version-5 UUID, in the namespace of
// object identifiers, of the item, the checkpoint and the event's position in
// the checkpoint's batch in decimal, with a NUL between each two. Writing a batch
// again so gives the same identities.
func EventID(item, checkpoint string, ordinal int) string {
	name := make([]byte, 0, 160)
	name = append(name, oid[:]...)
	name = append(append(name, item...), 0)
	name = append(append(name, checkpoint...), 0)
	name = strconv.AppendInt(name, int64(ordinal), 10)
	sum := sha1.Sum(name)
	return uuidText(sum[:16], 5)
}

// uuidText spells the bytes of a UUID after setting its version and variant.
func uuidText(u []byte, version byte) string {
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// SubItem is the identity of an item that a step made of its parent: the
// parent's, a slash, the step, a colon and the index, such as "digit-7/perturb:3".
func SubItem(parent, step string, index int64) string {
	return parent + "/" + step + ":" + strconv.FormatInt(index, 10)
}

// SplitSubItem takes apart what SubItem put together; ok is false for an
// identity that SubItem did not make.
func SplitSubItem(item string) (parent, step string, index int64, ok bool) {
	colon := strings.LastIndexByte(item, ':')
	if colon < 0 {
		return "", "", 0, false
	}
	slash := strings.LastIndexByte(item[:colon], '/')
	if slash <= 0 || slash+1 == colon {
		return "", "", 0, false
	}
	index, err := strconv.ParseInt(item[colon+1:], 10, 64)
	if err != nil || SubItem(item[:slash], item[slash+1:colon], index) != item {
		return "", "", 0, false
	}
	return item[:slash], item[slash+1 : colon], index, true
}

// MaxNameBytes is the longest name of a pipeline or an experiment, in bytes.
const MaxNameBytes = 200

// CheckName refuses a name of a pipeline or an experiment that is not made of 1
// to MaxNameBytes letters, digits, '.', '_' and '-', or that begins with a dot.
// The error wraps ErrName.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: %.20q... has more than %d bytes", ErrName, name, MaxNameBytes)
	case name[0] == '.':
		return fmt.Errorf("%w: %q begins with a dot", ErrName, name)
	}
	for _, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-') {
			return fmt.Errorf("%w: %q has %q", ErrName, name, r)
		}
	}
	return nil
}

// Directory is the folder below a root that holds the logs of all pipelines.
const Directory = "datagen_checkpoints"

// Path is where the dataset of an experiment lies below its root.
func Path(pipeline, experiment string) string {
	return path.Join(Directory, pipeline, experiment, "log.lance")
}
