// Package metrics is the second log: the JSONL metrics stream of one training
// run, written by [Runtime] and [Run], read by [Decoder], [Check], [Mixed] and
// [Follower], folded by [Fold] into what people look at.
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
