package objstore

import "context"

// CopyPart is how much of an object [CopyTo] has in memory at most, in bytes.
const CopyPart = 8 << 20

// CopyTo writes an object of one store into another under the same key. One that is larger
// than CopyPart is read in parts, up to the size that info has; it appears in the other
// store once all parts are there, and not at all if the object turns out shorter. Copied,
// if not nil, gets the bytes of each part.
func CopyTo(ctx context.Context, to, from Store, info Info, copied func(n int64)) error {
	if copied == nil {
		copied = func(int64) {}
	}
	if info.Size > CopyPart {
		return copyParts(ctx, to, from, info, copied)
	}
	b, err := from.Get(ctx, info.Key, CopyPart)
	if err == nil {
		err = to.Put(ctx, info.Key, b)
	}
	if err == nil {
		copied(int64(len(b)))
	}
	return err
}

func copyParts(ctx context.Context, to, from Store, info Info, copied func(n int64)) error {
	w, err := to.Create(ctx, info.Key)
	if err != nil {
		return err
	}
	defer w.Abort()
	for off := int64(0); off < info.Size; {
		n := min(CopyPart, info.Size-off)
		b, err := from.GetRange(ctx, info.Key, off, n)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		copied(n)
		off += n
	}
	return w.Close()
}
