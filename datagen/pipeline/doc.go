// Package pipeline runs data-generation pipelines on the datagen log: steps in
// sequence, in loops and branches, over sub-items, with filters and retries,
// for many items at once.
//
// Every step that is done is one durable checkpoint. What is running when the
// process dies is run again, and nothing else: a pipeline is walked anew for an
// item that is resumed, and every step whose instance the log has is passed over.
// An instance is the path of one execution, such as "refine#2/classify": step
// classify in round 2 of loop refine.
//
// # Decisions
//
// Loops and branches write nothing of their own. Which way they went follows from
// the steps in the log: as long as the log has steps that the walk has not
// passed yet, the walk goes where they are. Behind the last of them the fields are
// what they were when the decision was due, so it comes out as it did then.
// Conditions must therefore depend on nothing but the item. If the log has a step
// that the walk never passes, the pipeline has been changed; see ChangedError.
package pipeline
