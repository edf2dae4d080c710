// Package study gives the operations of a study journal their meaning.
//
// The 22 operations are one sum type, [Op]; [AppendOp] and [Decoder] spell
// them as the format does. [Fold] is the pure state machine that replays them:
// no I/O, no clock, no randomness. [Draft] tries operations on top of a fold
// without touching it. [Snapshot] is an immutable, consistent view for readers.
//
// [Storage] puts a fold and a log together: [NewMemory] keeps everything in
// memory, [OpenJournal] in a journal on disk. Its transactions ([Tx]) have one
// method per operation. [Sweeper] fails trials whose owner has gone silent and
// [DeliverOutbox] drives what has to happen after a trial ended.
//
// A program that searches begins with package asktell, which has an example: it asks
// for trials, whose parameters the study's sampler suggests, and ends them. The
// operations are below that.
package study
