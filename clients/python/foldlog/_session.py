"""The way to a study or a datagen log: requests and answers, whoever does the
work.

This is the only place that knows about processes. What the requests are is told
in docs/guide/python.md and docs/guide/datagen.md of the Foldlog project.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import weakref
from typing import Any, Dict, Optional, Type, Union

from ._targets import leave_signals

_PATIENCE = 30.0  # seconds that foldlog may take to end


class StudyError(Exception):
    """A study could not do what was asked for. `kind` tells errors apart,
    `hint` says what to do about it, or is empty."""

    kind = "journal"
    message: str
    hint: str

    def __init__(self, message: str, hint: str = "", kind: Optional[str] = None) -> None:
        super().__init__(message + ("\nhint: " + hint if hint else ""))
        self.message = message
        self.hint = hint
        if kind:
            self.kind = kind


class InvalidRequest(StudyError, ValueError):
    """What was asked for makes no sense: a name, a range, a value."""

    kind = "usage"


class NotFound(StudyError, LookupError):
    """There is no such journal, study or trial."""

    kind = "not_found"


class AlreadyExists(StudyError):
    """There is such a study, or the trial has such a parameter."""

    kind = "exists"


class TrialLost(StudyError):
    """The trial belongs to somebody else now: this process was silent for
    longer than the lease. What it told is not recorded."""

    kind = "fenced"


class BudgetSpent(StudyError):
    """The study has all the trials that the budget allows."""

    kind = "budget"


class SessionEnded(StudyError):
    """The foldlog process has ended, or was closed."""

    kind = "ended"


_KINDS = {e.kind: e for e in (InvalidRequest, NotFound, AlreadyExists, TrialLost, BudgetSpent)}


# What to do here, where the command's own advice is about its flags.
_HINTS = {
    ("create", "exists"): "exist_ok=True opens it as it is, another name makes another one",
    ("open", "not_found"): "create_study makes one",
    ("ask", "budget"): "a larger budget admits more",
    ("trial", "not_found"): "",
}


def connect(path: Union[str, os.PathLike[str]], lease: float, retries: int,
            binary: Union[str, os.PathLike[str], None] = None) -> StudySession:
    """Returns the session for a path, or for http(s)://HOST/PATH at a server: the
    foldlog command speaks with the server, with the token FOLDLOG_TOKEN."""
    path = os.fspath(path)
    return StudySession(path, lease, retries, binary)


def find_binary(binary=None):
    """The foldlog command: the one given, FOLDLOG_BINARY, or that of PATH."""
    name = binary or os.environ.get("FOLDLOG_BINARY") or "foldlog"
    found = shutil.which(os.fspath(name))
    if found is None:
        raise NotFound("there is no command %r" % os.fspath(name), "install foldlog, or set FOLDLOG_BINARY to its path")
    return found


class ProcessSession:
    """A session with a foldlog process of its own, which lives as long as this
    object. Threads may share it, and have their requests done at once where the
    process can do that. A forked child cannot use it."""

    # What a subclass is about: its name, how long a request may be in bytes, its errors
    # by their kind, and what to do about them where the command's own advice is not.
    noun = "log"
    most = 16 << 20
    kinds: Dict[str, Any] = {}
    other: Type[Exception] = Exception
    ended: Type[Exception] = SessionEnded
    hints: Dict[Any, str] = {}

    def __init__(self, args, binary=None):
        args = [find_binary(binary), "--quiet", *args]
        # A session of its own: Ctrl-C is for this program, which then tells it.
        # Without buffers, so that a fork finds no lock of theirs held.
        self._process = subprocess.Popen(args, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         start_new_session=os.name == "posix")
        self._pid = os.getpid()
        self._lock = threading.RLock()  # while a request is written; a handler of a signal may want to write one too
        self._half = False  # whether a request is written in part, maybe for good
        self._last = 0
        self._answers = _Answers(self._process.stdout, weakref.WeakMethod(self._unheard))
        _sessions.add(self)

    def __reduce__(self) -> Any:
        raise TypeError("what belongs to a session cannot be pickled; the study or the log can")

    def call(self, do: str, **fields: Any) -> Any:
        """Does one request and returns its result. What interrupts the wait for it, as
        Ctrl-C does, leaves the session as it is."""
        line, call = self._spell(do, fields), _Call(do, fields)
        try:
            self._send(call, line)
            call.answered.acquire()
            return self._result(call)
        except BaseException:
            self._answers.give_up(call)
            raise

    def _spell(self, do, fields):
        try:
            line = json.dumps(dict(fields, do=do), separators=(",", ":"), allow_nan=False, default=_plain)
        except (TypeError, ValueError, RecursionError) as e:
            raise self.kinds["usage"]("%s: %s" % (do, e), kind="usage") from None
        if len(line) > self.most - 64:
            raise self.kinds["usage"]("%s: %d bytes as JSON, the most is %d" % (do, len(line), self.most), kind="usage")
        return line

    def _send(self, call, line):
        with self._lock:
            process = self._process  # another thread may close the session from here on
            self._check()
            self._last += 1
            self._answers.expect(call, self._last)
            self._half = True
            try:
                self._write(process.stdin, b'{"id":%d,%s\n' % (self._last, line[1:].encode()))
                self._half = False
            except BaseException:
                process.stdin.close()  # half a request cannot be followed by another
                raise

    def _write(self, stdin, line):
        out = memoryview(line)
        try:
            while out:
                out = out[stdin.write(out):]
        except (OSError, ValueError):
            pass  # it has ended or is closed, as who waits for the answer will hear

    def _result(self, call):
        if call.answer is None:
            raise self._gone("; whether it did %r is not known" % call.do)
        call.heard = True
        error = call.answer["error"]
        if error is None:
            return call.answer["ok"]
        kind = error["kind"]
        raise self.kinds.get(kind, self.other)(error["message"], self.hints.get((call.do, kind), error["hint"]), kind)

    def _unheard(self, do, fields, result):
        """Is called with the result of a request that was done after all, though who
        made it was interrupted."""

    def _check(self):
        if self._pid != os.getpid():
            raise self.ended("the %s was opened by another process" % self.noun, "open it in the process that uses it")
        if self._process is None:
            raise self.ended("the %s is closed" % self.noun, "open it again")
        if self._half or self._answers.over:
            raise self._gone("")

    def _gone(self, more):
        process = self._process
        if process is None:
            return self.ended("the %s was closed%s" % (self.noun, more), "open it again")
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            pass
        return self.ended("the foldlog process has ended, status %s%s" % (process.returncode, more), "open it again")

    def close(self) -> None:
        """Ends the process, once it has done what was asked for."""
        if self._pid != os.getpid():
            return
        process, self._process = self._process, None
        if process is None:
            return
        process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._answers.thread.join(_PATIENCE)  # a fork of this program may hold the other end of the pipe

    def _forget(self):
        """In a forked child: does not keep the parent's pipe open."""
        self._lock = threading.RLock()
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.returncode = 0  # it is not ours to wait for


class _Call:
    """A request, and the answer once it is there: None at the end of the process."""

    __slots__ = ("do", "fields", "answered", "answer", "heard", "given_up")

    def __init__(self, do, fields):
        self.do, self.fields = do, fields
        self.answered = threading.Lock()
        self.answered.acquire()
        self.answer, self.heard, self.given_up = None, False, False


class _Answers:
    """Hands answers to those who wait for them, in a thread of its own. It does not
    keep the session alive."""

    def __init__(self, stream, unheard):
        self.over = False
        self._unheard = unheard
        self._calls = {}  # that are not answered, by number
        self._lock = threading.RLock()
        self.thread = threading.Thread(target=self._listen, args=(stream,), name="foldlog answers", daemon=True)
        self.thread.start()

    def expect(self, call, number):
        self._calls[number] = call
        if self.over:  # it may have ended before it could see this one
            self._end()

    def give_up(self, call):
        with self._lock:
            call.given_up = True
            answer = call.answer
        if answer is not None and not call.heard:
            self._tell(call)

    def _listen(self, stream):
        leave_signals()
        pieces = []
        try:
            while True:
                piece = stream.read(1 << 16)
                if not piece:
                    break
                *lines, rest = piece.split(b"\n")
                for line in lines:
                    pieces.append(line)
                    self._deliver(json.loads(b"".join(pieces)))
                    pieces = []
                pieces.append(rest)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # what is no answer ends it as well
        finally:
            self.over = True
            self._end()
            stream.close()

    def _deliver(self, answer):
        call = self._calls.pop(answer["id"])
        with self._lock:
            call.answer = answer
            given_up = call.given_up
        call.answered.release()
        if given_up:
            self._tell(call)

    def _tell(self, call):
        unheard = self._unheard()
        if unheard is not None and call.answer["error"] is None:
            unheard(call.do, call.fields, call.answer["ok"])

    def _end(self):
        while self._calls:
            try:
                _, call = self._calls.popitem()
            except KeyError:
                return
            call.answered.release()


def _plain(value):
    """What JSON has for a number or an array of numpy, a tensor, or a path."""
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise TypeError("JSON has nothing for %s %.80r" % (type(value).__name__, value))


class StudySession(ProcessSession):
    """A session about a study. Trials that were not told when it ends have failed."""

    noun = "study"
    kinds = _KINDS
    other = StudyError
    hints = _HINTS

    def __init__(self, path: str, lease: float, retries: int, binary: Any = None) -> None:
        self._spare: list[Dict[str, Any]] = []  # trials of interrupted calls of ask
        super().__init__(["study", "session", path, "--lease", "%dms" % round(lease * 1000), "--retries", str(retries)], binary)

    def ask(self, budget: Optional[int]) -> Dict[str, Any]:
        """Starts a trial, or gives one that nobody has heard of."""
        try:
            return self._spare.pop()
        except IndexError:
            asked: Dict[str, Any] = self.call("ask", budget=budget)
            return asked

    def _unheard(self, do, fields, result):
        if do == "ask":
            self._spare.append(result)


_sessions: weakref.WeakSet[ProcessSession] = weakref.WeakSet()


def _forget_all():
    for session in list(_sessions):
        session._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
