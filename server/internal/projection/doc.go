// Package projection keeps what a server wants to know about metrics streams
// without reading them again: a digest of every stream in memory, and the points
// of long ones as columns on disk.
//
// Everything here follows from the streams. The directory of a [Store] can be
// deleted at any time; what is missing, stale or of another [Version] is made
// again from the files. Nothing in it is synced: checksums find what a power loss
// has left, and a stream whose projection is damaged is read anew.
//
//	DIR/projection-vN/catalog         a record for each stream, the last one counts
//	DIR/projection-vN/points/HH/ID    the points of one stream in blocks
//
// A block holds the points of a stretch of the stream, for each metric name the
// columns step, time, value and series, and for each [chunkPoints] points of a name
// a summary: ends, ranges, minimum, maximum, first non-finite value. A curve
// that is asked for in fewer points than it has is sampled from the summaries; the
// columns are read only for what they cannot answer. Of a very long stream neighbouring
// summaries are joined in memory, where there are no more than [mostSummaries]. The end of
// a stream that has no block yet is kept in memory while it is written to, and parsed again
// when it is asked for later, which costs milliseconds.
//
// # Why plain columns
//
// Measured on one machine in one run, rows of 32 bytes: plain columnar blocks with a
// checksum take 10.3 million points a second and sample a million points in
// 1.2-2.7 ms; Arrow IPC takes 10.6 and Parquet 12.2 million, with a reader that has
// to be built around their metadata; DuckDB 3.2 million and 13 ms, and needs cgo;
// SQLite 0.9 million and 770 ms; bbolt 0.6 million. `make bench-server` measures
// this package.
package projection

// Version is that of everything on disk. Raise it when older bytes would be
// misread; directories of other versions are removed.
const Version = 4
