// Package runner runs the trials of a study as commands.
//
// [Work] is one worker: it claims a trial, runs the command with the trial's
// parameters, takes the metrics that the command prints as reports and as the
// result, keeps the claim alive meanwhile, and finishes the trial. It fails
// trials whose worker has gone silent and delivers retries. Any number of
// workers, in any number of processes, may work on one study.
//
// [Supervise] starts worker processes and tells them when to stop.
//
// What a command gets: its arguments with {name} replaced by the parameter of
// that name ({{ and }} are braces), and in its environment FOLDLOG_PARAMS (all
// parameters as a JSON object), FOLDLOG_STUDY, FOLDLOG_TRIAL (the number),
// FOLDLOG_ATTEMPT and FOLDLOG_JOURNAL. What it prints on standard output is the
// metrics stream, JSON objects one a line, or lines with name=value that name a metric
// of the study or the step; these are passed over once there was one of the others.
// Everything else is let through to the log of its last lines. Exit status 0 is Complete if every metric has a
// value; [PauseStatus] puts the trial on hold; any other status is Failed, with the
// end of the output as the reason.
package runner
