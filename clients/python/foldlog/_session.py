"""The way to a study or a datagen log: requests and answers, whoever does the
work.

This is the only place that knows about processes. What the requests are is told
in docs/guide/python.md and docs/guide/datagen.md of the Foldlog project.
"""

import json
import os
import shutil
import subprocess
import threading
import weakref


_PATIENCE = 30.0  # seconds that foldlog may take to end


class StudyError(Exception):
    """A study could not do what was asked for. `kind` tells errors apart,
    `hint` says what to do about it, or is empty."""

    kind = "journal"

    def __init__(self, message, hint="", kind=None):
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


def connect(path, lease, retries, binary=None):
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
    object. Threads may share it. A forked child cannot use it."""

    # What a subclass is about: its name, its errors by their kind, and what to do
    # about them where the command's own advice is not.
    noun = "log"
    kinds = {}
    other = Exception
    ended = SessionEnded
    hints = {}

    def __init__(self, args, binary=None):
        args = [find_binary(binary), "--quiet", *args]
        # A session of its own: Ctrl-C is for this program, which then tells it.
        # Without buffers, so that a fork finds no lock of theirs held.
        self._process = subprocess.Popen(args, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         start_new_session=os.name == "posix")
        self._read = bytearray()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._last = 0
        _sessions.add(self)

    def call(self, do, **fields):
        """Does one request and returns its result."""
        with self._lock:
            self._check()
            self._last += 1
            try:
                line = json.dumps(dict(fields, id=self._last, do=do), separators=(",", ":"), allow_nan=False)
            except (TypeError, ValueError) as e:
                raise InvalidRequest("%s: %s" % (do, e)) from None
            try:
                answer = self._exchange(line.encode() + b"\n")
            except OSError:
                answer = None
            except BaseException:
                self._stop()  # half a conversation cannot go on
                raise
            if answer is None:
                self._stop()
                raise self.ended("the foldlog process has ended, status %s" % self._process.returncode)
        answer = json.loads(answer)
        error = answer["error"]
        if error is None:
            return answer["ok"]
        kind = error["kind"]
        raise self.kinds.get(kind, self.other)(error["message"], self.hints.get((do, kind), error["hint"]), kind)

    def _check(self):
        if self._process is None:
            raise self.ended("the %s is closed" % self.noun, "open it again")
        if self._process.stdin.closed:
            raise self.ended("the foldlog process has ended, status %s" % self._process.returncode)
        if self._pid != os.getpid():
            raise self.ended("the %s was opened by another process" % self.noun, "open it in the process that uses it")

    def close(self):
        """Ends the process."""
        with self._lock:
            if self._process is not None and self._pid == os.getpid():
                self._stop()
                self._process = None

    def _exchange(self, line):
        """Sends a line and returns the next one, None at the end."""
        out = memoryview(line)
        while out:
            out = out[self._process.stdin.write(out):]
        while True:
            end = self._read.find(b"\n")
            if end >= 0:
                answer = bytes(self._read[:end])
                del self._read[: end + 1]
                return answer
            piece = self._process.stdout.read(1 << 16)
            if not piece:
                return None
            self._read += piece

    def _stop(self):
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _forget(self):
        """In a forked child: does not keep the parent's pipe open."""
        self._lock = threading.Lock()
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.returncode = 0  # it is not ours to wait for


class StudySession(ProcessSession):
    """A session about a study. Trials that were not told when it ends have failed."""

    noun = "study"
    kinds = _KINDS
    other = StudyError
    hints = _HINTS

    def __init__(self, path, lease, retries, binary=None):
        super().__init__(["study", "session", path, "--lease", "%dms" % round(lease * 1000), "--retries", str(retries)], binary)


_sessions = weakref.WeakSet()


def _forget_all():
    for session in list(_sessions):
        session._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
