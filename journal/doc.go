// Package journal keeps study journals (.atj, format 6): the durable,
// append-only log of a hyper-parameter search that many processes write at
// once. It knows bytes and durability; what an operation means is the business
// of package study.
//
// A journal NAME.atj is two things:
//
//	NAME.atj      header line, head line: replaced whole by every append
//	NAME.atj.d/   data files of immutable extents, one file per writer handle
//	  data-WORKER-N-RANDOM
//	  lease/      the baton that a writer holds while it publishes
//	  queue/      who waits for it
//
// The head names the last extent, each extent names the one before it. What
// the head reaches is the journal; every other byte is not. Readers take no
// lock and never write. The bytes are described in docs/format/journal.md.
//
// An append is durable when [Writer.Do] returns nil: the extent was written and
// synced, then a ticket holding the next head was written and synced under the
// lease, renamed onto the head, and the directory synced.
//
// What waits for other processes, or works on a whole journal, takes a context: the
// calls of a [Writer], [Reader.Follow], [Build], [Copy], [Salvage] and [Verify].
// [Reader.Refresh] is stopped by an error of its [Applier]; the other reads decode no
// operations.
package journal
