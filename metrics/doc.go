// Package metrics is the log of training runs: one stream of JSON lines per run.
//
// A training program writes its stream with [Start], which gives the [Runtime] to
// what runs the experiment and a [Run] to the experiment itself. [ReadStream] reads
// a stream, [Follower] one that is being written, [Mixed] the output of a program
// in which events stand between other lines; [Check] says what is wrong with one.
// [Fold] makes of its events what people look at.
//
// A stream is one complete JSON object per line, each with ts_ms, the Unix
// epoch in milliseconds, of one of four kinds:
//
//	{"ts_ms":1,"kind":"open","slug":"my-run","description":"...","metadata":{...}}
//	{"ts_ms":2,"step":4,"kind":"metric","name":"train/loss","value":2.7658,"metadata":{"split":"train"}}
//	{"ts_ms":3,"step":8,"kind":"annotation","annotation":"checkpoint /ckpt/8","metadata":{"checkpoint":"/ckpt/8","seconds":0.041}}
//	{"ts_ms":4,"kind":"done","slug":"my-run"}
//
// The first line is an open; a resumed run appends another open to the same
// file; a run that was stopped or killed has no done. docs/format/metrics.md
// has every field, limit and rule.
package metrics
