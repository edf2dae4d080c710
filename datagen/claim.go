package datagen

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// claimDoc is what a claim file holds, as JSON.
type claimDoc struct {
	Item string `json:"item"`
	Seq  int64  `json:"seq"`
	// Writer is the shard of the writer that has the claim; "" gives it up.
	Writer string `json:"writer"`
	Nonce  string `json:"nonce"`
}

const maxClaimDoc = 64 << 10

// claim is the right to write the event of an item at a sequence: the highest of the
// numbered files of the two.
type claim struct {
	item string
	seq  int64
	// turn is the number of our file; those before it are of writers that are sealed.
	turn int
	doc  []byte
}

// claimPrefix is what the names of the claim files of an item begin with.
func claimPrefix(item string) string {
	sum := sha256.Sum256([]byte(item))
	return claimsDir + hex.EncodeToString(sum[:16]) + "-"
}

func claimKey(item string, seq int64, turn int) string {
	return fmt.Sprintf("%s%012d-%04d.json", claimPrefix(item), seq, turn)
}

// maxTurns bounds how often one event of one item is claimed.
const maxTurns = 10_000

// claim takes the right to write the event at a sequence. The event must not have been
// in the log when this began or it may be won in vain, so the caller looks again
// afterwards. A claim of a writer that lives is a HeldError; that of a dead one counts
// no more once its shard is sealed.
func (w *Writer) claim(ctx context.Context, item string, seq int64) (*claim, error) {
	doc, err := json.Marshal(claimDoc{Item: item, Seq: seq, Writer: w.shard.String(), Nonce: rand.Text()})
	if err != nil {
		return nil, err
	}
	for turn := 0; turn < maxTurns; turn++ {
		key := claimKey(item, seq, turn)
		err := w.putClaim(ctx, key, doc)
		if err == nil {
			return &claim{item: item, seq: seq, turn: turn, doc: doc}, nil
		}
		if !errors.Is(err, objstore.ErrExists) {
			return nil, fmt.Errorf("claim item %q: %w", item, err)
		}
		old, err := w.log.readClaim(ctx, key)
		switch {
		case errors.Is(err, objstore.ErrNotFound):
			return nil, errClaimPassed
		case err != nil:
			return nil, fmt.Errorf("claim item %q: %w", item, err)
		case old.Writer == "":
			continue
		case old.Writer == w.shard.String():
			_, err := w.log.coord.Stat(ctx, claimKey(item, seq, turn+1))
			if errors.Is(err, objstore.ErrNotFound) { // ours from before, and not given up
				return &claim{item: item, seq: seq, turn: turn, doc: old.raw}, nil
			}
			if err != nil {
				return nil, fmt.Errorf("claim item %q: %w", item, err)
			}
			continue
		}
		if err := w.outlive(ctx, item, old.Writer); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("claim item %q: %d claims of one event", item, maxTurns)
}

// putClaim puts a claim file. An outcome that cannot be told, as when the file in the way
// goes away at that moment, is settled by putting the same bytes again.
func (w *Writer) putClaim(ctx context.Context, key string, doc []byte) (err error) {
	for try := range 5 {
		err = w.log.coord.PutIfAbsent(ctx, key, doc)
		if !errors.Is(err, objstore.ErrAmbiguous) {
			break
		}
		_ = sleep.For(ctx, time.Duration(try)*10*time.Millisecond)
	}
	return err
}

// errClaimPassed: a claim file went away, which it does once the log is past it.
var errClaimPassed = errors.New("the item has moved on")

// outlive makes sure that the writer of an older claim can write no more.
func (w *Writer) outlive(ctx context.Context, item, writer string) error {
	shard, err := memwal.ParseID(writer)
	if err != nil {
		return nil // no writer of ours ever wrote this
	}
	if err := w.log.watches.of(shard).inherit(ctx, w.shard.String()); err != nil {
		return heldItem(err, item)
	}
	return nil
}

// heldItem puts the item into a HeldError.
func heldItem(err error, item string) error {
	var held *HeldError
	if errors.As(err, &held) {
		held.Item = item
		return held
	}
	return fmt.Errorf("open item %q: %w", item, err)
}

// readDoc is a claim file that was read.
type readDoc struct {
	claimDoc
	raw []byte
}

// readClaim reads a claim file. One that makes no sense is nobody's.
func (l *Log) readClaim(ctx context.Context, key string) (readDoc, error) {
	b, err := l.coord.Get(ctx, key, maxClaimDoc)
	if err != nil && !errors.Is(err, objstore.ErrTooLarge) {
		return readDoc{}, err
	}
	d := readDoc{raw: b}
	if json.Unmarshal(b, &d.claimDoc) != nil {
		d.claimDoc = claimDoc{}
	}
	return d, nil
}

// still makes sure, right before the first event of a claim is written, that its file is
// there: if somebody removed it, it is put again, unless another has claimed the event
// meanwhile, who found nothing of ours in the log and goes on.
func (w *Writer) still(ctx context.Context, c *claim) error {
	key := claimKey(c.item, c.seq, c.turn)
	d, err := w.log.readClaim(ctx, key)
	if errors.Is(err, objstore.ErrNotFound) {
		if err = w.putClaim(ctx, key, c.doc); errors.Is(err, objstore.ErrExists) {
			d, err = w.log.readClaim(ctx, key)
		} else {
			d.raw = c.doc
		}
	}
	if err != nil {
		return err
	}
	if string(d.raw) != string(c.doc) {
		return &HeldError{Item: c.item, By: d.Writer, Holder: "writer " + d.Writer + ", which claimed it when our claim was lost"}
	}
	return nil
}

// spent removes the files of a claim whose event is in the log: they say nothing any
// more, and maintenance removes what is left of them.
func (w *Writer) spent(ctx context.Context, c *claim) {
	for turn := c.turn; turn >= 0; turn-- {
		_ = w.log.coord.Delete(ctx, claimKey(c.item, c.seq, turn))
	}
}

// release gives up a claim of which nothing came. The file stays until the log is past
// it, so that turns are never counted anew.
func (w *Writer) release(ctx context.Context, c *claim) {
	doc, err := json.Marshal(claimDoc{Item: c.item, Seq: c.seq, Nonce: rand.Text()})
	if err == nil {
		_ = w.log.coord.PutIfAbsent(ctx, claimKey(c.item, c.seq, c.turn+1), doc) // unreleased it ends with us
	}
}
