package runner

import (
	"fmt"
	"os"
)

// What a command starts knows by its environment which trial it belongs to, and
// which worker process was there for it: by that whoever works on the study next
// on this machine finds what a worker that was killed together with its supervisor
// has left running. Nothing need be written to the journal for it, and nothing is
// missed that was started before anybody could have written anything.

// workerVar names the worker process, in a form that no other process will ever
// have on this machine until it is started anew.
const workerVar = "FOLDLOG_WORKER_PROCESS"

// clearLeftovers kills what is left of the commands of this journal whose worker
// is dead, and tells.
func (w *worker) clearLeftovers() {
	if w.Journal == "" {
		return
	}
	if n := killLeftovers(absolute(w.Journal)); n > 0 {
		w.event(Event{Kind: Cleared, Text: fmt.Sprintf("killed what trials of a dead worker had left running (processes: %d)", n)})
	}
}

// leftoverEnv are the variables by which the processes of our trials are found.
func leftoverEnv(journal string) []string {
	env := []string{"FOLDLOG_JOURNAL=" + absolute(journal)}
	if mark := markOf(os.Getpid()); mark != "" {
		env = append(env, workerVar+"="+mark)
	}
	return env
}
