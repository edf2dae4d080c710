// Package remote lets what works on logs on disk work on logs at a Foldlog server: the
// files of datagen logs as a store of objects, study journals as a log of operations
// that is folded here. docs/http-api.md has the calls.
//
// What is acknowledged is durable at the server. A call whose answer is lost is made
// again; where that could do something twice, the server recognises a repetition, or the
// client looks for what the lost call would have left.
package remote
