// Package optuna lets programs that tune with Optuna use a study journal: as the
// server that their optuna.storages.GrpcStorageProxy speaks to, and by import and
// export of the files of their optuna.storages.JournalStorage.
//
// Optuna's studies and trials are studies and raw trials of the journal, under
// the same numbers. A trial that Optuna puts back to WAITING is paused. What the
// journal has no operation for lives in attributes under "foldlog:optuna.":
//
//	system:KEY       a system attribute of a study or trial
//	user:KEY         a user attribute whose key is reserved in the journal
//	user-text:KEY    a user or system attribute that is JSON to Python only, with
//	system-text:KEY  NaN or half a surrogate pair in it, as text
//	start, complete  the trial's times, where they are not those of its operations
//	values           final values that are not one per direction
//	step:N           an intermediate value at a negative step
//
// Of two attributes that mean the same, the one that was set later counts. A
// distribution that the journal cannot express, like choices with NaN inside a
// list, is kept as {"Optuna":"TEXT"}.
//
// Managed trials, which Foldlog's own workers run, are seen by Optuna and refused
// to be changed by it.
package optuna
