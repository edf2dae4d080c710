"""Sends a stream to a Foldlog server: the stream protocol of docs/http-api.md.

Beside a file the server gets that file's bytes, so that what it lacks at the end
can be sent by `foldlog metrics push` at any time. Without a file, lines wait in
memory, within bounds.
"""

import hashlib
import http.client
import json
import os
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from ._report import TargetReport
from ._targets import FIRST_BACKOFF, FLUSH_EVERY, LAST_BACKOFF, Bounded, leave_signals

REQUEST_TIMEOUT = 10.0  # seconds that one request may take
BATCH_BYTES = 1 << 20  # about how much goes into one request
SMALLEST_BATCH = 64 << 10  # where a server that finds requests too large is given up
OVERLAP_BYTES = 16 << 10  # how much of what a server has is compared again
MAX_DETOURS = 8  # how often a stream may turn out to be taken
MAX_ANSWER = 64 << 10


class Away(Exception):
    """The server does not answer, or answers that it cannot now."""

    def __init__(self, why, retry_after=0.0):
        super().__init__(why)
        self.retry_after = retry_after


class Refused(Exception):
    """An answer that repeating cannot change."""


class Conflict(Exception):
    """The server has other bytes, or not enough."""

    def __init__(self, expected, detail):
        super().__init__("conflict: the server expects offset %d: %s" % (expected, detail))
        self.expected = expected


class _TooLarge(Exception):
    """The server finds the request too large."""


class Client:
    """Posts lines at an offset of a stream."""

    def __init__(self, base, token=""):
        self.base, self.token = base.rstrip("/"), token

    def append(self, slug, stream, offset, lines):
        url = "%s/api/v1/runs/%s/streams/%s?offset=%d" % (self.base, urllib.parse.quote(slug, safe=""), stream, offset)
        request = urllib.request.Request(url, data=lines, method="POST", headers={"Content-Type": "application/x-ndjson"})
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT) as answer:
                return json.loads(answer.read(MAX_ANSWER))
        except urllib.error.HTTPError as e:
            with e:
                raise _problem(e) from None
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise Away("server away: %s" % _reason(e)) from None


def _reason(error):
    """Why there was no answer, and what to do about a certificate that nobody knows."""
    reason = getattr(error, "reason", None) or error
    if type(reason).__name__ == "SSLCertVerificationError":  # there are Pythons without ssl
        return "%s; SSL_CERT_FILE names the file of a certificate that no known authority signed" % reason
    return reason


def _problem(answer):
    """The exception for an answer other than success."""
    try:
        body = json.loads(answer.read(MAX_ANSWER))
        detail = str(body.get("detail") or body.get("title") or "")
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        body, detail = {}, ""
    status = answer.code
    if status == 409:
        expected = body.get("expected")
        if isinstance(expected, int) and expected >= 0:
            return Conflict(expected, detail)
        return Refused("409 without an expected offset")
    text = "%d %s: %s" % (status, answer.reason, detail)
    if status in (401, 403):
        return Refused("not authorised: " + text)
    if status == 413:
        return _TooLarge("refused by the server: " + text)
    if status in (408, 429) or status >= 500:
        return Away("server away: " + text, _retry_after(answer))
    return Refused("refused by the server: " + text)


def _retry_after(answer):
    try:
        return min(max(float(answer.headers.get("Retry-After", "")), 0.0), 60.0)
    except ValueError:
        return 0.0


class FileSource:
    """The whole lines of a file."""

    def __init__(self, path):
        self._path, self._file = path, None

    def end(self):
        if self._file is None:
            self._file = open(self._path, "rb")
        size = os.fstat(self._file.fileno()).st_size
        at = size
        while at > 0:
            start = max(0, at - (64 << 10))
            newline = self.read(start, at - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            at = start
        return 0

    def read(self, offset, size):
        self._file.seek(offset)
        return self._file.read(size)

    def close(self):
        if self._file is not None:
            self._file.close()


class Backlog:
    """Lines in memory, from an offset on."""

    def __init__(self):
        self._start, self._data = 0, bytearray()

    def add(self, data):
        self._data += data

    def end(self):
        return self._start + len(self._data)

    def read(self, offset, size):
        at = max(offset - self._start, 0)
        return bytes(self._data[at : at + size])

    def trim(self, offset):
        n = offset - self._start
        if n > 0:
            del self._data[:n]
            self._start = offset
        return max(n, 0)

    def close(self):
        pass


class Uploader:
    """Brings a stream at a server up to what a source has."""

    def __init__(self, client, slug, source):
        self.client, self.slug, self.source = client, slug, source
        self.first_line = self.stream = None
        self.known = False  # where the server is
        self.cursor = 0  # up to here the server has the same bytes
        self.had = 0  # bytes that the server has, new ones of ours included
        self.batch, self.detours, self.taken = BATCH_BYTES, 0, 0
        self.events = self.bytes = 0  # that the server did not have before
        self.page = ""

    def sync(self, end):
        """Sends what is before end. After an exception it can be called again."""
        if self.stream is None and not self._identify(end):
            return
        while True:
            try:
                return self._pass(end)
            except Conflict as conflict:
                self._detour(conflict)

    def _identify(self, end):
        line = self.source.read(0, min(end, (1 << 20) + 1))
        newline = line.find(b"\n")
        if newline < 0:
            return False
        self.first_line = line[:newline]
        self.stream = hashlib.sha256(self.first_line).hexdigest()[:16]
        return True

    def _pass(self, end):
        if not self.known:
            self._locate(end)
        while self.cursor < end:
            lines = self._read(end)
            try:
                answer = self.client.append(self.slug, self.stream, self.cursor, lines)
            except _TooLarge as e:
                if self.batch <= SMALLEST_BATCH:
                    raise Refused(str(e)) from None
                self.batch //= 2
                continue
            if not isinstance(answer.get("offset"), int) or answer["offset"] < self.cursor + len(lines):
                raise Away("server away: it has only %s bytes" % answer.get("offset"))
            self._acknowledged(lines, answer)

    def _locate(self, end):
        try:
            answer = self.client.append(self.slug, self.stream, end, b"")
            self.had, self.page = int(answer.get("offset", 0)), str(answer.get("page", ""))
        except Conflict as conflict:
            self.had = conflict.expected
        self.cursor = self._overlap_start(min(self.had, end))
        self.known = True

    def _overlap_start(self, at):
        start = max(0, at - OVERLAP_BYTES)
        if start == 0:
            return 0
        newline = self.source.read(start, at - start).find(b"\n")
        return start + newline + 1 if newline >= 0 else at

    def _read(self, end):
        size = self.batch
        while True:
            size = min(size, end - self.cursor)
            lines = self.source.read(self.cursor, size)
            newline = lines.rfind(b"\n")
            if newline >= 0:
                return lines[: newline + 1]
            if len(lines) < size or size == end - self.cursor:
                raise Refused("the file is shorter than it was")
            size *= 2

    def _acknowledged(self, lines, answer):
        after = self.cursor + len(lines)
        fresh = min(after - self.had, len(lines))
        if fresh > 0:
            self.events += lines.count(b"\n", len(lines) - fresh)
            self.bytes += fresh
            self.had = after
        self.cursor, self.page = after, str(answer.get("page", ""))

    def _detour(self, conflict):
        """Goes back to what the server has, or on under another id."""
        self.detours += 1
        if self.detours > MAX_DETOURS:
            raise Refused(str(conflict))
        if conflict.expected < self.cursor:
            self.cursor = self.had = conflict.expected
            return
        self.taken += 1
        name = self.first_line + b"#%d" % self.taken
        self.stream = hashlib.sha256(name).hexdigest()[:16]
        self.known, self.cursor = False, 0


class ServerTarget:
    """Sends lines to a server from a thread of its own."""

    def __init__(self, url, token, slug, path=None, limit=None):
        self.name = _redacted(url)
        self._memory = None if path else Backlog()
        self._source = FileSource(path) if path else self._memory
        self._up = Uploader(Client(url, token), slug, self._source)
        self._queue = queue.SimpleQueue()
        self._bounded = Bounded(limit, patience=0)
        self._refused = 0
        self._closing = threading.Event()
        self._given_up = threading.Event()
        self._error = None
        self._retries = 0
        self._thread = threading.Thread(target=self._loop, name="foldlog " + self.name, daemon=True)
        self._thread.start()

    def put(self, line):
        if self._memory is None:
            return
        if self._bounded.admit(line):
            self._queue.put(line.data)
        else:
            self._refused += 1

    def _loop(self):
        leave_signals()
        backoff = FIRST_BACKOFF
        while not self._given_up.is_set():
            last = self._closing.is_set()
            try:
                self._step()
                backoff, self._error = FIRST_BACKOFF, None
                if last:
                    return
                self._closing.wait(FLUSH_EVERY)
            except Away as e:
                self._error = "send: %s" % e
                self._retries += 1
                wait = max(backoff, e.retry_after)
                if last:
                    self._given_up.wait(wait)
                elif self._closing.wait(wait):
                    backoff = FIRST_BACKOFF
                    continue
                backoff = min(2 * backoff, LAST_BACKOFF)
            except Exception as e:  # whatever it is, training goes on
                self._error = "send: %s" % e
                return

    def _step(self):
        if self._memory is not None:
            self._take()
        self._up.sync(self._source.end())
        # The first line alone may have been that of another process that opens alike: the
        # stream then begins anew elsewhere.
        if self._memory is not None and self._up.cursor > len(self._up.first_line or b"") + 1:
            self._bounded.taken += self._memory.trim(self._up.cursor)

    def _take(self):
        while True:
            try:
                self._memory.add(self._queue.get_nowait())
            except queue.Empty:
                return

    def close(self, deadline):
        self._closing.set()
        self._thread.join(max(deadline - time.monotonic(), 0))
        self._given_up.set()
        self._thread.join(0.2)
        r = TargetReport(self.name, self._up.events, self._up.bytes, retries=self._retries, page=self._up.page)
        r.dropped = self._refused
        if self._memory is not None:
            r.dropped += self._waiting()
        else:
            r.left = self._left()
        if r.dropped or r.left or (self._error and not self._error.startswith("send: server away")):
            r.error = self._error or "send: target too slow"
        if not self._thread.is_alive():
            self._source.close()
        return r

    def _waiting(self):
        lines = self._queue.qsize()
        size = self._memory.end() - self._up.cursor
        return lines + self._memory.read(self._up.cursor, size).count(b"\n")

    def _left(self):
        try:
            with open(self._source._path, "rb") as f:
                f.seek(self._up.cursor)
                return sum(chunk.count(b"\n") for chunk in iter(lambda: f.read(1 << 20), b""))
        except OSError:
            return 0


def _redacted(url):
    """The address without a password."""
    parts = urllib.parse.urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit(parts._replace(netloc="%s:xxxxx@%s" % (parts.username, host)))
