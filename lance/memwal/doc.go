// Package memwal adds many small durable writes to a Lance table: each writer owns a
// shard beside the table, a row of generations that are small tables themselves, and
// merges them into the table in the background. Readers see the table and all shards
// as one. The layout is Lance's MemWAL, so the real Lance library reads the union,
// takes over our shards and lets us take over its own.
//
// # What is durable when
//
// [Writer.Append] returns once the shard's manifest that names the generation with its
// rows has been put, which only the owner of the shard can: its number must be free,
// and whoever claims the shard takes the next. Callers share generations. The files of
// a generation are durable before its manifest is; a flush that fails leaves no trace,
// its callers get the error, and the next takes its number, so none is ever skipped.
//
// # Fencing
//
// Opening a shard claims it: an epoch one higher, written into its manifest, and a
// sentinel in its write-ahead log. From then on nothing of the owner before can be
// acknowledged; it finds out with [ErrFenced] at its next append. Entries that another
// owner left in the log are replayed as generations before anything else. Our own
// writers keep no log.
package memwal
