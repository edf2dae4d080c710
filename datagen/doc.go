// Package datagen is the checkpoint log of data-generation pipelines: every
// step of every item is recorded once it is done, whatever crashes afterwards,
// and everything else, the fields of an item, where it is to be resumed, what
// failed, how it came about, is folded from the record.
//
// An experiment is one Lance dataset whose rows are immutable events. Writers
// append them through shards of their own (package lance/memwal); readers see
// the events of all writers as one log.
//
// # What is durable when
//
// A checkpoint is one batch: the changes of one step of one item, and the
// completion of the step. It is visible whole or not at all. It is acknowledged
// once the manifest that names its generation is durable, and from then on every
// reader that begins sees it.
//
// # Who may write
//
// An item has one live writer: that of its last event, or, for the next one, that of
// the highest claim. Another takes it over only after it has claimed and sealed the
// shards of both, which can acknowledge nothing from then on, has put a claim of its
// own, and has looked at the item once more in a view that is younger than all that. It
// goes on under a writer epoch of its own. Which writers live is told by leases; a
// mistake there fences a writer that lives, and loses nothing.
//
//	shard of the last event      claim of the next sequence     who may go on
//	ours                         anybody's                      we
//	of a writer that lives       anybody's                      its writer
//	sealed, or no event          of a writer that lives         the claim's writer
//	sealed, or no event          none, given up, or sealed      whoever puts the next turn
//
// Claim files say nothing once the log is past their sequence. docs/format/datagen.md
// has them and the leases.
//
// # Reading
//
// A [View] is one state of the base and all shards, so that an item whose writer
// changed is never seen with a gap. Duplicates count once; copies of an event that
// differ are a fault of the item, found for as long as both are there.
package datagen
