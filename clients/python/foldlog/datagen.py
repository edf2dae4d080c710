"""The checkpoint log of data generation: every step of every item is durable
once it is done, and is never done again.

    with foldlog.DatagenLog("digits/v1", root="experiments") as log:
        for item in log.claim(keys):
            with item:
                item.step("draw", lambda: {"image": draw(item.key)})
                for round in item.loop("refine", most=5):
                    item.step("improve", lambda: {"score": improve(item["image"].read())})
                    if item["score"] > 0.9:
                        break

A program that is killed and started again goes through the same lines. A step
that the log has is passed over, and the fields are those of that moment, so that
conditions turn out as they did; the first step that it has not is done.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
import traceback
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Tuple, Type, Union

from ._json import mend
from ._session import ProcessSession, _Call, _plain

Path = Union[str, "os.PathLike[str]"]
Fields = Optional[Mapping[str, Any]]
Work = Union[Fields, Callable[[], Fields]]
"""The fields that a step sets, or a function that returns them."""

_STEP = re.compile(r"[A-Za-z0-9_.-]{1,100}\Z")


class DatagenError(Exception):
    """The log could not do what was asked for. `kind` tells errors apart, `hint`
    says what to do about it, or is empty."""

    kind = "log"

    def __init__(self, message: str, hint: str = "", kind: Optional[str] = None) -> None:
        super().__init__(message + ("\nhint: " + hint if hint else ""))
        self.message = message
        self.hint = hint
        if kind:
            self.kind = kind


class DatagenEnded(DatagenError):
    """The foldlog process has ended, or was closed."""

    kind = "ended"


class ItemHeld(DatagenError):
    """Another process that lives works on the item."""

    kind = "held"


class ItemChanged(DatagenError):
    """The program is not the one that began the item: the log has another step
    next. `DatagenLog.item(key, rerun=True)` begins an item that has ended anew."""

    kind = "changed"


class InvalidStep(DatagenError, ValueError):
    """What was asked for makes no sense: a name, a value that the log cannot hold, one
    that is too large."""

    kind = "usage"


class _Leave(BaseException):
    """Leaves the block of an item that has ended: with item, and no other one's."""

    def __init__(self, item: Item) -> None:
        super().__init__("item %s has ended: what is done with it belongs into `with item:`, which ends here" % item.key)
        self.item = item


class _Session(ProcessSession):
    noun = "log"
    most = 128 << 20
    kinds = {"held": ItemHeld, "usage": InvalidStep}
    other = DatagenError
    ended = DatagenEnded

    def _unheard(self, do, fields, result):
        """Gives an item back that nobody knows of."""
        if do in ("item", "sub", "next") and result is not None:
            try:
                self._send(_Call("close", {}), self._spell("close", {"item": result["item"]}))
            except DatagenError:
                pass  # it has ended, and with it the item is free


class Blob:
    """Bytes in the log, read when they are asked for."""

    def __init__(self, log: DatagenLog, event: str, size: int, checksum: Optional[str]) -> None:
        self._log, self._event = log, event
        self.size, self.checksum = size, checksum

    def read(self) -> bytes:
        """The bytes, checked against their checksum."""
        with self._log._scratch() as path:
            self._log._call("blob", event=self._event, size=self.size, checksum=self.checksum, to=path)
            with open(path, "rb") as f:
                return f.read()

    def __repr__(self) -> str:
        return "Blob(size=%d, checksum=%r)" % (self.size, self.checksum)


class DatagenLog:
    """The log of an experiment, which is made if there is none. `name` is
    "PIPELINE/EXPERIMENT" below `root` (a directory, s3://BUCKET/PREFIX, or the
    http(s)://HOST of a server, with the token FOLDLOG_TOKEN), or the path or address
    of a log. What keeps it from being opened is a DatagenError with its hint. Any
    number of processes may work on one at once; threads may share a DatagenLog, but
    not an item."""

    def __init__(self, name: Path, root: Optional[Path] = None, run: Optional[str] = None, binary: Optional[Path] = None) -> None:
        args = ["datagen", "session", os.fspath(name)]
        if root is not None:
            args += ["--root", os.fspath(root)]
        if run is not None:
            args += ["--run", run]
        self._again = (os.fspath(name), root, None, binary)
        self._session = _Session(args, binary)
        self._folder = os.path.abspath(tempfile.mkdtemp(prefix="foldlog-"))
        self._cleanup = weakref.finalize(self, _remove, self._folder, os.getpid())
        try:
            opened = self._call("open")
        except BaseException:
            self.close()
            raise
        self.pipeline, self.experiment, self.run = opened["pipeline"], opened["experiment"], opened["run"]

    def item(self, key: object, tags: Optional[Mapping[str, Any]] = None, rerun: bool = False) -> Item:
        """Begins an item or resumes it. One that has ended is given too, and its
        block does nothing, unless it is to run again. ItemHeld if another process
        works on it."""
        return Item(self, self._call("item", item=str(key), tags=tags, rerun=rerun))

    def claim(self, keys: Iterable[object]) -> Iterator[Item]:
        """Yields those of the items that have work left, each once, shared with
        whatever other processes do the same. An item that another works on is
        waited for at the end, and taken over should that process die."""
        opened = self._call("keys", keys=[str(key) for key in keys])
        while True:
            state = self._call("next", list=opened["list"])
            if state is None:
                return
            yield Item(self, state)

    def close(self) -> None:
        """Ends the session. What was recorded stays."""
        self._session.close()
        self._cleanup()

    def __reduce__(self) -> Any:
        return DatagenLog, self._again

    def __enter__(self) -> DatagenLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, do, **fields):
        return self._session.call(do, **fields)

    def _scratch(self):
        return _Scratch(self._folder)


def _remove(folder, pid):
    if os.getpid() == pid:  # a forked child leaves it to its parent
        shutil.rmtree(folder, ignore_errors=True)


class _Scratch:
    """The path of a file that is gone afterwards."""

    def __init__(self, folder):
        self._folder = folder

    def __enter__(self):
        handle, self.path = tempfile.mkstemp(dir=self._folder)
        os.close(handle)
        return self.path

    def __exit__(self, *_):
        os.unlink(self.path)


class Item:
    """An item, and where in its steps the program is. In a `with` block it is
    completed at the end of the block. An exception is recorded as a failure and
    goes on; Ctrl-C and SystemExit are not, and the item is resumed from there."""

    def __init__(self, log: DatagenLog, state: Dict[str, Any]) -> None:
        self._log = log
        self.key, self.root, self.parent = state["item"], state["root"], state["parent"]
        self.tags, self.attempt = state["tags"], state["attempt"]
        self._status = state["status"]
        self._open = self._status not in ("completed", "filtered")
        self._past = state["steps"]
        self._at = 0  # how many of them the program has come past
        self._scopes: List[Tuple[str, int]] = []
        self._places: Dict[str, int] = {}  # the static place of every step, from 1
        self._now = None  # the step that is being done
        self.fields: Dict[str, Any] = {}

    @property
    def ended(self) -> bool:
        """Whether it is completed or filtered."""
        return self._status in ("completed", "filtered")

    @property
    def status(self) -> str:
        """pending, running, failed, completed or filtered."""
        return self._status

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def get(self, name: str, default: Any = None) -> Any:
        """A field as the steps so far have left it, or the default."""
        return self.fields.get(name, default)

    def done(self, name: str) -> bool:
        """Whether the step that comes next is this one, and is complete."""
        return self._at < len(self._past) and self._past[self._at]["instance"] == self._instance(name)

    def step(self, name: str, work: Work = None, append: Work = None, filter: bool = False) -> Dict[str, Any]:
        """Does a step, unless it is complete: work is called and returns the fields
        to set, as a dict or None; it may be a dict itself. `append` are values to
        add to those of fields, or a function that returns them. All of it is one
        checkpoint. Values are what JSON has, and bytes. With filter=True the item
        ends with it, as filtered, and its block is left. Returns the fields."""
        instance = self._instance(name)
        place = "/".join([scope.split("#")[0] for scope, _ in self._scopes] + [name])
        self._places.setdefault(place, len(self._places) + 1)
        if self._at < len(self._past):
            self._pass(instance)
            if self._status == "filtered" and self._at == len(self._past):
                raise _Leave(self)
            return self.fields
        self._check_open()
        self._now = self._step(name, instance, self._places[place])
        changes = dict((work() if callable(work) else work) or {})
        added = dict((append() if callable(append) else append) or {})
        twice = sorted(changes.keys() & added.keys())
        if twice:
            raise InvalidStep("fields both set and appended to: %s" % ", ".join(twice))
        self._record(changes, added, "filtered" if filter else "")
        self._now = None
        if filter:
            self._end("filtered")
            raise _Leave(self)
        return self.fields

    def loop(self, name: str, most: Optional[int] = None) -> Iterator[int]:
        """Yields 0, 1, ... for the rounds of a loop, `most` at most; leave it with
        break. Each round has its steps to itself."""
        self._check_name(name)
        depth = len(self._scopes)
        round = 0
        try:
            while most is None or round < most:
                self._scopes.append(("%s#%d" % (name, round), round))
                yield round
                del self._scopes[depth:]
                round += 1
        finally:
            del self._scopes[depth:]

    def sub(self, name: str, index: int, tags: Optional[Mapping[str, Any]] = None) -> Item:
        """Begins or resumes a sub-item. The name and the index tell it from its
        siblings."""
        step = self._instance(name).replace("/", "~")
        self._check_open()
        return Item(self._log, self._log._call("sub", item=self.key, step=step, index=index, tags=tags))

    def filter(self) -> NoReturn:
        """Ends the item as filtered, and leaves its block."""
        self.finish("filtered")
        raise _Leave(self)

    def finish(self, end: str = "completed") -> None:
        """Ends the item. Its block does that by itself."""
        if self._at < len(self._past):
            raise self._changed("where the program ends")
        if self._open:
            self._log._call("end", item=self.key, end=end)
            self._end(end)

    def fail(self, type: str, message: str = "", traceback: str = "") -> None:
        """Records that the attempt failed; the item can be resumed."""
        if self._open:
            self._log._call("fail", item=self.key, type=type, message=message, traceback=traceback, **(self._now or {}))

    def close(self) -> None:
        """Gives the item up as it is. It can be resumed."""
        if self._open:
            self._open = False
            self._log._call("close", item=self.key)

    def __enter__(self) -> Item:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> bool:
        if kind is None:
            self.finish()
        elif kind is _Leave:
            self.close()
            return isinstance(error, _Leave) and error.item is self
        elif issubclass(kind, (ItemChanged, DatagenEnded)):
            if kind is ItemChanged:
                self.close()
        elif issubclass(kind, Exception):
            try:
                self.fail(kind.__name__, str(error), "".join(traceback.format_exception(kind, error, trace)))
            finally:
                self.close()
        else:
            self.close()
        return False

    def _check_name(self, name):
        if not _STEP.match(name):
            raise InvalidStep("step name %r: letters, digits, dots, underscores and hyphens are allowed" % name)

    def _instance(self, name):
        self._check_name(name)
        return "/".join([scope for scope, _ in self._scopes] + [name])

    def _step(self, name, instance, place):
        step = {"step": name, "instance": instance, "index": place}
        if self._scopes:
            step["iteration"] = self._scopes[-1][1]
        return step

    def _check_open(self):
        if self.ended:
            raise _Leave(self)
        if not self._open:
            raise DatagenError("item %s is closed" % self.key)

    def _pass(self, instance):
        """Comes past a step that is complete, with the fields that it left."""
        past = self._past[self._at]
        if past["instance"] != instance:
            raise self._changed("where the program comes to %s" % instance)
        self._at += 1
        for change in past["changes"]:
            value = self._value(change["kind"], change["value"], change["event"])
            if change["append"]:
                self.fields.setdefault(change["name"], []).append(value)
            else:
                self.fields[change["name"]] = value

    def _changed(self, due):
        self._open = self._open and not self.ended
        return ItemChanged("item %s was begun by another program: the log has step %s %s" % (self.key, self._past[self._at]["instance"], due))

    def _value(self, kind, value, event):
        if kind == "blob":
            return Blob(self._log, event, value["size"], value["checksum"])
        if isinstance(value, dict) and set(value) == {"$float"}:
            return float(value["$float"].replace("Infinity", "inf"))
        return value

    def _record(self, changes, added, end):
        scratch, fields = [], {}
        try:
            changes = {name: self._keep(name, value) for name, value in changes.items()}
            added = {name: self._keep(name, value) for name, value in added.items()}
            for name, value in changes.items():
                fields[name] = self._spell(value, scratch)
            for name, value in added.items():
                fields[name] = {"$append": self._spell(value, scratch)}
            self._log._call("checkpoint", item=self.key, fields=fields, end=end, **self._now)
        finally:
            for file in scratch:
                file.__exit__()
        self.fields.update(changes)
        for name, value in added.items():
            self.fields.setdefault(name, []).append(value)

    def _keep(self, name, value):
        """The value as a program that is started again will find it, so that what it
        does with it is the same: lists for tuples, the keys of mappings in their order."""
        if isinstance(value, Blob):
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _Bytes(value)
        try:
            if not isinstance(value, (bool, int, float, str, dict, list, tuple, type(None))):
                value = _plain(value)
            if isinstance(value, str):
                return mend(value)
            if isinstance(value, float) and not math.isfinite(value):
                return float(value)
            return json.loads(json.dumps(value, allow_nan=False, default=_plain), object_pairs_hook=_ordered)
        except (TypeError, ValueError, RecursionError) as e:
            raise InvalidStep("field %r: %s" % (name, e)) from None

    def _spell(self, value, scratch):
        if isinstance(value, Blob):
            file = self._log._scratch()
            path = file.__enter__()
            scratch.append(file)
            with open(path, "wb") as f:
                f.write(value.read())
            return {"$blob": path}
        if isinstance(value, float) and not math.isfinite(value):
            return {"$float": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
        return value if isinstance(value, (bool, int, float, str)) else {"$json": value}

    def _end(self, end):
        self._status, self._open = end, False


def _ordered(pairs):
    """The members of an object in the order of the log."""
    return dict(sorted(dict(pairs).items(), key=lambda member: member[0].encode("utf-8", "surrogatepass")))


class _Bytes(Blob):
    """A blob that this program has just recorded."""

    def __init__(self, value: Any) -> None:
        self._value_bytes = bytes(value)
        self.size, self.checksum = len(self._value_bytes), None

    def read(self) -> bytes:
        """The bytes."""
        return self._value_bytes
