"""A run and its stream: open first, metrics and annotations, done last."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Literal, Mapping, Optional, SupportsFloat, Type, Union

from . import _json, _notes
from ._limits import (
    MAX_ANNOTATION,
    MAX_LINE,
    MAX_METADATA,
    MAX_NOTE_METADATA,
    LimitError,
    check_metadata,
    check_name,
    check_slug,
    count_sentence,
    cut,
    utf8,
)
from ._report import Report
from ._server import ServerTarget
from ._targets import CLOSE_TIMEOUT, FileTarget, Line, TargetError

log = logging.getLogger("foldlog")

if TYPE_CHECKING:
    from typing import SupportsIndex

    Target = Union[str, os.PathLike[str]]
    Targets = Union[None, Target, Iterable[Target]]
    Number = Union[SupportsFloat, SupportsIndex]


class Closed(RuntimeError):
    """An event for a run that has ended, or that belongs to another process."""


class Interrupted(SystemExit):
    """A signal that would have ended the process, so that it can end well."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(128 + number)
        self.signal = name


def open(slug: str, description: str = "", metadata: Optional[Mapping[str, Any]] = None, to: Targets = None,
         runtime: Optional[Mapping[str, Any]] = None, token: Optional[str] = None, signals: bool = True, **options: Any) -> Run:
    """Opens a run and writes its open event, first of all.

    slug         names the run, the same for every resume of it
    description  is one line for people
    metadata     is the identity of the run: knobs, run, sources and so on
    to           is a target or a list of them: "jsonl:PATH" (or a pathlib.Path),
                 "stdout" or "http(s)://HOST"; by default FOLDLOG_SERVER
    runtime      is metadata that every metric gets; it wins over the metric's
    token        is shown to servers; by default FOLDLOG_TOKEN
    signals      tells whether `with` catches SIGINT and SIGTERM, and the run
                 without it SIGTERM where that would end the process at once

    A target whose file cannot be opened is a TargetError; a server that is away
    is not. Metadata beyond 64 KiB loses its list of sources to the sentence
    "N files, too large to record"; still beyond it is a LimitError.
    """
    return Run(slug, description, metadata, to, runtime, token, signals, **options)


class Run:
    """The handle of what runs an experiment. It may be used from any thread.

    As a context manager it ends the stream: with done; with the failure and
    done after an exception; with neither after a signal, which is written. A run
    that nothing has ended when the program ends is ended in the same way then.
    """

    def __init__(self, slug: str, description: str = "", metadata: Optional[Mapping[str, Any]] = None, to: Targets = None,
                 runtime: Optional[Mapping[str, Any]] = None, token: Optional[str] = None, signals: bool = True, **options: Any) -> None:
        self._lock = threading.RLock()  # a signal may come while it is held
        self._clock = options.pop("clock", time.time)
        self._timeout = options.pop("close_timeout", CLOSE_TIMEOUT)
        for name in sorted(set(options) - {"limit", "patience"}):
            raise TypeError("open() has no argument %r%s" % (name, "; knobs go into metadata=" if name in ("config", "params", "hparams") else ""))
        self.slug, self._signals = slug, signals
        self._previous: dict[int, Any] = {}
        self._pid, self._ended, self._interrupted = os.getpid(), False, False
        self._step = 0
        self._report: Optional[Report] = None
        opening = _open_line(slug, description, metadata)
        self.set_metadata(runtime)
        self._targets = _open_targets(_target_list(to), slug, token, options)
        self._emit(opening, urgent=True)
        atexit.register(self._at_exit)
        self._last_chance = _at_end_of_child(self._at_exit)
        _watch_exit()
        if signals and _in_main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self.catch_signals(signal.SIGTERM)

    def __reduce__(self) -> Any:
        raise TypeError("a run cannot be pickled: it belongs to the process that opened it")

    @property
    def experiment(self) -> Experiment:
        """The handle for an experiment, which can do nothing but report metrics."""
        return Experiment(self)

    @property
    def step(self) -> int:
        """The step of the latest metric."""
        return self._step

    @property
    def report(self) -> Optional[Report]:
        """What became of the events, once the run has ended."""
        return self._report

    def set_metadata(self, runtime: Optional[Mapping[str, Any]]) -> None:
        """Replaces what every metric gets from now on, for example the stage."""
        _json.metadata(runtime)
        self._runtime = dict(runtime or {})

    def metric(self, step: SupportsIndex, name: str, value: Number, metadata: Optional[Mapping[str, Any]] = None) -> None:
        """Writes one number at a step."""
        check_name(name)
        at = _json.step(step)
        spelled = _json.metadata({**(metadata or {}), **self._runtime})
        check_metadata("metadata of metric %a" % name, spelled, MAX_METADATA)
        spelled_value = _json.number(value)
        self._step = at
        self._emit(
            '"step":%d,"kind":"metric","name":%s,"value":%s,"metadata":%s'
            % (at, _json.string(name), spelled_value, spelled or "{}")
        )

    def metrics(self, step: SupportsIndex, values: Mapping[str, Number], metadata: Optional[Mapping[str, Any]] = None) -> None:
        """Writes a mapping of names to numbers at a step."""
        for name, value in values.items():
            self.metric(step, name, value, metadata)

    def log(self, values: Mapping[str, Number], *, step: SupportsIndex, metadata: Optional[Mapping[str, Any]] = None) -> None:
        """Writes a mapping of names to numbers at a step, as metrics does."""
        self.metrics(step, values, metadata)

    def annotate(self, step: SupportsIndex, text: str, metadata: Optional[Mapping[str, Any]] = None) -> None:
        """Writes an annotation. A text beyond 16,000 UTF-16 units is cut."""
        spelled = _json.metadata(metadata)
        check_metadata("annotation metadata", spelled, MAX_NOTE_METADATA)
        self._emit(
            '"step":%d,"kind":"annotation","annotation":%s,"metadata":%s'
            % (_json.step(step), _json.string(cut(_json.mend(text))), spelled or "{}"),
            urgent=True,
        )

    def lowering(self, step: SupportsIndex, head: str, graphs: Iterable[str] = (), tail: Iterable[str] = (), device: str = "") -> None:
        """Reports how a GPU run was lowered: a head, lines about graphs, a tail."""
        self.annotate(step, *_notes.lowering(head, graphs, tail, device))

    def memory_plan(self, step: SupportsIndex, text: str, parts: Optional[Mapping[str, Any]] = None) -> None:
        """Reports the memory plan and its parts, before the first step."""
        self.annotate(step, *_notes.memory_plan(text, parts))

    def memory_retry(self, step: SupportsIndex, what: str) -> None:
        """Reports that an allocation failed and was retried."""
        self.annotate(step, *_notes.memory_retry(step, what))

    def memory_peak(self, step: SupportsIndex, peak: str, planned: str) -> None:
        """Compares the peak with the plan, when the run ends."""
        self.annotate(step, *_notes.memory_peak(peak, planned))

    def stacking(self, step: SupportsIndex, text: str, degrees: Optional[Mapping[str, Any]] = None) -> None:
        """Reports the stacking choice and what was measured."""
        self.annotate(step, *_notes.stacking(text, degrees))

    def stage(self, step: SupportsIndex, from_: str, to: str) -> None:
        """Reports that the curriculum moved on."""
        self.annotate(step, *_notes.stage(from_, to))

    def checkpoint(self, step: SupportsIndex, location: Union[str, os.PathLike[str]], seconds: Optional[float] = None) -> None:
        """Reports a checkpoint, and how many seconds writing it took."""
        self.annotate(step, *_notes.checkpoint(location, seconds))

    def resumed(self, step: SupportsIndex, location: Union[str, os.PathLike[str]], changed: Iterable[str] = ()) -> None:
        """Reports that the run continued from a checkpoint, and what changed:
        lines of source_changed and knob_changed."""
        self.annotate(step, *_notes.resumed(location, changed))

    def interrupted(self, signal_name: str = "SIGINT", step: Optional[SupportsIndex] = None) -> None:
        """Writes that a signal stopped the run; its end will have no done."""
        self._interrupted = True
        step = self._step if step is None else step
        self.annotate(step, *_notes.interrupted(signal_name, step))

    def failed(self, message: object, step: Optional[SupportsIndex] = None) -> None:
        """Writes why the run stopped; done must follow."""
        self.annotate(self._step if step is None else step, *_notes.failed(str(message)))

    def done(self) -> Optional[Report]:
        """Ends the run: done, unless it was interrupted, flushed and synced.

        Returns the report: what every target got. What was lost is also said
        by the logger "foldlog".
        """
        if self._pid != os.getpid():
            return self._report
        with self._lock:
            if not self._ended and not self._interrupted:
                self._emit('"kind":"done","slug":' + _json.string(self.slug), urgent=True, sync=True)
        return self.close()

    def close(self) -> Optional[Report]:
        """Ends the stream without done, as one that will be resumed."""
        if self._pid != os.getpid():
            return self._report
        with self._lock:
            if self._ended:
                return self._report
            self._ended = True
        atexit.unregister(self._at_exit)
        if self._last_chance is not None:
            self._last_chance.cancel()
        if _in_main_thread():
            self.release_signals()
        deadline = time.monotonic() + self._timeout
        reports = {}
        for target in sorted(self._targets, key=lambda t: isinstance(t, ServerTarget)):  # they follow the file to its end
            reports[target] = target.close(deadline)
        self._report = Report([reports[t] for t in self._targets])
        for t in self._report.targets:
            if t.dropped or t.left or t.error:
                log.warning("%s%s", t, self._completed_by(t))
        return self._report

    def _completed_by(self, report):
        """What sends a server the events that the file has."""
        paths = [t.path for t in self._targets if isinstance(t, FileTarget) and t.path]
        return "; foldlog metrics push %s --to %s sends them" % (paths[0], report.target) if report.left and paths else ""

    def _emit(self, members, urgent=False, sync=False):
        if self._pid != os.getpid():  # first: a fork may have copied the lock as another thread held it
            raise Closed("the run %s belongs to process %d" % (self.slug, self._pid))
        with self._lock:
            if self._ended:
                raise Closed("the run %s has ended" % self.slug)
            data = ('{"ts_ms":%d,%s}\n' % (int(self._clock() * 1000), members)).encode("utf-8")
            if len(data) > MAX_LINE + 1:
                raise LimitError("event: line too long: %d bytes, the most is %d" % (len(data) - 1, MAX_LINE))
            line = Line(data, urgent, sync)
            for target in self._targets:
                target.put(line)

    def _at_exit(self):
        """Ends a run that the program has not ended, as `with` would have. What
        an exception was that ended the program is known; where somebody types,
        it is only the latest one, which ended nothing."""
        if not self._ended and self._pid == os.getpid():
            error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
            self._end(_signalled or error or _end_of_child() or _left)

    def __enter__(self) -> Run:
        if self._signals and _in_main_thread():
            self.release_signals()
            self.catch_signals()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> Literal[False]:
        self.release_signals()
        if not self._ended:
            self._end(error)
        return False

    def _end(self, error):
        """Ends the stream after an exception, or after none."""
        if error is None or isinstance(error, SystemExit) and error.code in (None, 0):
            self.done()
        elif isinstance(error, (KeyboardInterrupt, Interrupted)):
            if not self._interrupted:
                self.interrupted(getattr(error, "signal", "SIGINT"))
            self.close()
        elif self._interrupted:
            self.close()
        else:
            self.failed("%s: %s" % (type(error).__name__, error))
            self.done()

    def catch_signals(self, *signals: int) -> None:
        """Writes the interruption when one of the signals comes: SIGINT and
        SIGTERM if none are named. Then what handled it before does so; where
        that would have ended the process, Interrupted is raised instead, so that
        a checkpoint can still be written. A second signal ends the process.
        Only the main thread can do this."""
        for number in signals or (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._on_signal)

    def release_signals(self) -> None:
        """Gives the signals back to what handled them before."""
        for number, handler in self._previous.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous = {}

    def _on_signal(self, number, frame):
        global _signalled
        previous = self._previous.get(number)
        self.release_signals()
        if self._pid != os.getpid() and previous == signal.SIG_DFL:
            os.kill(os.getpid(), number)  # a forked child dies of it, as without a run
            return
        name = signal.Signals(number).name
        if not self._ended and self._pid == os.getpid():
            self.interrupted(name)
        if callable(previous):
            previous(number, frame)
        elif previous != signal.SIG_IGN:
            _signalled = Interrupted(name, number)
            raise _signalled


# The signal that ends this process, for the runs that it has besides the one that
# caught it.
_signalled = None


# How sys.exit was called last. Python does not tell at the end of a program.
_left = None


def _watch_exit():
    if hasattr(sys.exit, "foldlog"):
        return
    leave = sys.exit

    def exit(status=None, /):
        global _left
        if _in_main_thread():  # in another it ends the thread
            _left = SystemExit(status)
        leave(status)

    exit.__doc__, exit.foldlog = leave.__doc__, True
    sys.exit = exit


def _at_end_of_child(end):
    """Has end called at the end of a process of multiprocessing: one that was forked
    does not come to atexit. None where there is no such process."""
    if "multiprocessing" not in sys.modules:
        return None
    import multiprocessing.util

    if multiprocessing.process.parent_process() is None:
        return None
    return multiprocessing.util.Finalize(None, end, exitpriority=0)


def _end_of_child():
    """How a process of multiprocessing ends: with an exception on its way, or with a
    status that only its own functions know, from Python 3.13 on. None if all is well."""
    frame, error = sys._getframe(), sys.exc_info()[1]
    while frame is not None and error is None:
        status = None
        if frame.f_globals.get("__name__", "").startswith("multiprocessing."):
            status = frame.f_locals.get("exitcode", frame.f_locals.get("code"))
        if isinstance(status, int):
            return SystemExit(status) if status else None
        frame = frame.f_back
    return error


def _in_main_thread():
    return threading.current_thread() is threading.main_thread()


class Experiment:
    """A run as its experiment sees it: it reports metrics and nothing else."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def metric(self, step: SupportsIndex, name: str, value: Number, metadata: Optional[Mapping[str, Any]] = None) -> None:
        """Writes one number at a step."""
        self._run.metric(step, name, value, metadata)


def _open_line(slug, description, metadata):
    check_slug(slug)
    spelled = _json.metadata(metadata)
    if utf8(spelled) > MAX_METADATA and isinstance(metadata.get("sources"), (list, tuple)):
        spelled = _json.metadata({**metadata, "sources": count_sentence(len(metadata["sources"]))})
    check_metadata("open metadata", spelled, MAX_METADATA)
    description = cut(_json.mend(description), MAX_ANNOTATION)
    return '"kind":"open","slug":%s,"description":%s,"metadata":%s' % (
        _json.string(slug),
        _json.string(description),
        spelled or "{}",
    )


def _target_list(to):
    if to is None:
        to = os.environ.get("FOLDLOG_SERVER") or ()
    if isinstance(to, (str, os.PathLike)):
        to = [to]
    return ["jsonl:" + os.fsdecode(name) if isinstance(name, os.PathLike) else name for name in to]


def _open_targets(names, slug, token, options):
    """Opens files first: a server follows the first of them."""
    if not names:
        raise TargetError("no target: jsonl:PATH, stdout or http(s)://HOST")
    for name in names:
        if not isinstance(name, str):
            raise TargetError("unknown target %r: a target is a text or a path" % (name,))
        if not name.startswith(("jsonl:", "http://", "https://")) and name != "stdout" or name == "jsonl:":
            meant = "; the file is jsonl:%s" % name if name.endswith(".jsonl") and ":" not in name else ""
            raise TargetError("unknown target %a; there are jsonl:PATH, stdout and http(s)://HOST%s" % (name, meant))
    token = os.environ.get("FOLDLOG_TOKEN", "") if token is None else token
    opened, path = {}, None
    try:
        for i, name in enumerate(names):
            if name.startswith("jsonl:"):
                opened[i] = FileTarget.open(name[len("jsonl:") :], **options)
                path = path or opened[i].path
            elif name == "stdout":
                opened[i] = FileTarget.stdout(**options)
    except OSError:
        for target in opened.values():
            target.close(time.monotonic())
        raise
    limit = options.get("limit")
    for i, name in enumerate(names):
        if i not in opened:
            opened[i] = ServerTarget(name, token, slug, path, limit)
    return [opened[i] for i in range(len(names))]
