// Package objstore is the storage seam under Foldlog's tables: objects named by
// slash-separated keys in a local directory, in an S3-compatible bucket, or in
// memory, and the one conditional write that commits rest on.
//
// # What every store promises
//
// An object appears whole or not at all, and once a write has returned without
// an error the object is durable. [Store.PutIfAbsent] lets exactly one of
// several writers win a key. An outcome that the store's answer leaves open is
// settled by reading back: a key that holds our own bytes was won by us. The
// bytes of a conditional write must therefore be unique to the caller, by a
// random token where nothing else tells two callers apart. Where reading back
// cannot settle it either, the error is [ErrAmbiguous].
//
// Listing is in byte order of the keys and sees every write that returned before
// it began.
//
// [Stage] writes several new objects for about the price of one, and with them the
// one that makes them count.
//
// # Leases
//
// [Election] builds a lease on nothing but PutIfAbsent: numbered successors, with
// liveness judged by the observer's own monotonic clock. A lease shares out
// work; safety must never rest on it.
package objstore
