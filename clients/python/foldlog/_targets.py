"""Targets of lines: files and standard output, each with a thread of its own.

Training is never held up for long. A line waits in a bounded queue, at most one
second for room in it and not again until something has moved; then it is
dropped and counted. A full disk is tried again from the byte where it stopped.
"""

import errno
import os
import queue
import signal
import stat
import sys
import threading
import time

from ._report import TargetReport

QUEUE_BYTES = 16 << 20  # how much waits for one target
RESERVE_BYTES = 256 << 10  # of these, kept for lines other than metrics
FLUSH_EVERY = 0.1  # seconds a line waits at most before it is on its way
CHUNK_BYTES = 64 << 10  # lines travel together up to about this
PATIENCE = 1.0  # seconds that a line waits for room
CLOSE_TIMEOUT = 5.0  # seconds that the end of a run waits for its targets
FIRST_BACKOFF, LAST_BACKOFF = 0.05, 5.0

_PASSING = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG, errno.EAGAIN}


class TargetError(OSError):
    """A target that is unknown or cannot be opened."""


class Line:
    """A line on its way, with its newline."""

    __slots__ = ("data", "urgent", "sync")

    def __init__(self, data, urgent=False, sync=False):
        self.data, self.urgent, self.sync = data, urgent, sync


class Bounded:
    """Counts what waits. Only producers add and only the consumer takes."""

    def __init__(self, limit=None, patience=None):
        self.limit = QUEUE_BYTES if limit is None else limit
        self.patience = PATIENCE if patience is None else patience
        self.added = self.taken = 0
        self.stuck_at = -1  # what had been taken when a line waited in vain

    def admit(self, line):
        """Tells whether there is room for a line, after waiting for it."""
        room = self.limit if line.urgent else max(self.limit - RESERVE_BYTES, self.limit // 2)
        if self._full(line, room) and self.taken != self.stuck_at:
            deadline = time.monotonic() + self.patience
            while self._full(line, room) and time.monotonic() < deadline:
                time.sleep(0.002)
        if self._full(line, room):
            self.stuck_at = self.taken
            return False
        self.added += len(line.data)
        return True

    def _full(self, line, room):
        waiting = self.added - self.taken
        return waiting > 0 and waiting + len(line.data) > room


def leave_signals():
    """Keeps signals from this thread: one that it takes does not wake the main thread."""
    if hasattr(signal, "pthread_sigmask"):
        own = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - own)


class FileTarget:
    """Appends whole lines to a file, or writes them to standard output."""

    def __init__(self, name, fd, path=None, limit=None, patience=None):
        self.name, self.path, self._fd = name, path, fd
        info = os.fstat(fd)
        self._regular = path is not None and stat.S_ISREG(info.st_mode)
        self._queue = queue.SimpleQueue()  # its put may interrupt itself: a signal may write
        self._bounded = Bounded(limit, patience)
        self._stop = threading.Event()
        self._closing = False
        self._report = TargetReport(name)
        self._put = 0  # lines that came
        self._named = not self._regular  # whether the file's name is durable
        self._dead = False
        self._error = None
        self._thread = threading.Thread(target=self._loop, name="foldlog " + name, daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path, **options):
        name = "jsonl:" + path
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            fd = os.open(path, flags, 0o644)
        except OSError as e:
            raise TargetError(e.errno, "%s: open: %s" % (name, e.strerror)) from None
        try:
            _close_torn_line(fd)
        except OSError as e:
            os.close(fd)
            raise TargetError(e.errno, "%s: open: %s" % (name, e.strerror)) from None
        return cls(name, fd, path, **options)

    @classmethod
    def stdout(cls, **options):
        try:
            sys.stdout.flush()
            fd = os.dup(sys.stdout.fileno())
        except (AttributeError, OSError, ValueError) as e:  # a notebook's, a test's, none
            raise TargetError(errno.EBADF, "stdout: open: it is no file here: %s" % e) from None
        return cls("stdout", fd, **options)

    def put(self, line):
        self._put += 1
        if self._bounded.admit(line):
            self._queue.put(line)

    def close(self, deadline):
        self._closing = True
        self._queue.put(None)
        self._thread.join(max(deadline - time.monotonic(), 0))
        self._stop.set()
        self._thread.join(0.2)
        r, ended = self._report, not self._thread.is_alive()
        if ended:
            os.close(self._fd)
        r.dropped = max(self._put - r.sent, 0)
        if r.dropped:
            r.error = self._error or "write: target too slow"
        elif self._error and self._error.startswith("sync"):
            r.error = self._error
        return r

    def _loop(self):
        leave_signals()
        ended = False
        while not ended:
            lines, ended = self._gather()
            if lines:
                self._write(lines)
        if self._regular and not self._dead:
            self._sync()

    def _gather(self):
        """Waits for lines; they travel together for a moment."""
        lines, size, deadline = [], 0, None
        while size < CHUNK_BYTES:
            try:
                wait = None if deadline is None else max(deadline - time.monotonic(), 0)
                line = self._queue.get(timeout=wait)
            except queue.Empty:
                break
            if line is None:
                return lines, True
            lines.append(line)
            size += len(line.data)
            if line.urgent or self._closing and self._queue.empty():
                break
            deadline = deadline or time.monotonic() + FLUSH_EVERY
        return lines, False

    def _write(self, lines):
        data = b"".join(line.data for line in lines)
        pos, wait = 0, FIRST_BACKOFF
        while pos < len(data) and not self._dead:
            size = self._size()
            try:
                pos += os.write(self._fd, data[pos:])
                continue
            except OSError as e:
                self._error = "write: %s" % (e.strerror or e)
                self._dead = e.errno not in _PASSING
            if self._dead or self._stop.wait(wait):
                break
            self._report.retries += 1
            wait = min(2 * wait, LAST_BACKOFF)
            if self._size() != size:
                pos = self._close_own_torn(data, pos)
        sent = data.count(b"\n", 0, pos)
        self._report.sent += sent
        self._report.bytes += pos
        self._bounded.taken += len(data)
        if lines[-1].sync and self._regular and not self._dead:
            self._sync()

    def _size(self):
        try:
            return os.fstat(self._fd).st_size if self._regular else 0
        except OSError:
            return 0

    def _close_own_torn(self, data, pos):
        """Starts a line anew if another process wrote behind its beginning."""
        start = data.rfind(b"\n", 0, pos) + 1
        if start == pos:
            return pos
        try:
            os.write(self._fd, b"\n")
        except OSError:
            return pos
        return start

    def _sync(self):
        try:
            os.fsync(self._fd)
            if not self._named:
                self._named = True
                _sync_folder(self.path)
        except OSError as e:
            self._error = "sync: %s" % (e.strerror or e)


def _sync_folder(path):
    """Makes the name of a file durable, where folders can be synced."""
    if os.name != "posix":
        return
    fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(fd)


def _close_torn_line(fd):
    """Ends the line that a crash has left, so that nothing is glued to it."""
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode) or info.st_size == 0:
        return
    os.lseek(fd, -1, os.SEEK_END)
    if os.read(fd, 1) != b"\n":
        os.write(fd, b"\n")
