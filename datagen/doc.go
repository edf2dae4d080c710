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
// An item has one live writer. Another takes it over only after it has claimed
// and sealed the shard of the one before, which can acknowledge nothing from
// then on, and goes on under a writer epoch of its own.
package datagen
