// Package lance reads and writes Lance tables in pure Go: versioned, append-friendly
// columnar datasets in a directory or a bucket, which the Lance libraries of other
// languages read, write, index and compact interchangeably. docs/format/lance.md says
// what is written and read, and against which release of Lance it is proved.
//
// A [Dataset] is one immutable version. What changes a dataset returns the next
// version and commits by putting a manifest whose name must be free, so any number of
// processes may write at once: a loser reads what the winners did, fits its change
// on top, or fails with [ErrConflict]. Versions are kept until [Dataset.CleanUp], and
// their files while a long scan or a [Pin] holds them.
//
// Data files are written in format 2.0. Formats 2.0, 2.1 and 2.2 are read for columns
// of integers, floats, bools, strings, binaries, timestamps and dates. What is not
// understood is refused with an [UnsupportedError] that names it; what is not
// understood in a manifest and need not be is carried on unchanged.
//
// Package memwal adds many small durable writes per second to a table.
package lance
