"""The points of metrics streams, back from their files.

    import foldlog

    losses = [p.value for p in foldlog.read_points("run.jsonl") if p.name == "loss"]
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Union

_EXTENSION = ".jsonl"
_SPELLED = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(frozen=True)
class Point:
    """One number of a run."""

    run: str  # the slug
    segment: int  # which process of the run wrote it, from 0
    step: int
    ts_ms: int  # when, in milliseconds since 1970
    name: str
    value: Union[int, float]
    metadata: Dict[str, Any]


def read_points(path: Union[str, os.PathLike[str]]) -> Iterator[Point]:
    """Reads the metrics of a stream, or of every stream under a directory, in the order
    of their lines, as `foldlog metrics export` does: what a run wrote again after a
    resume is there twice, in two segments. The file may be written meanwhile; lines
    that are no events, as a torn last one, are passed over. OSError if a file cannot
    be read."""
    path = os.fspath(path)
    for file in _streams(path) if os.path.isdir(path) else [path]:
        yield from _points(file)


def _streams(folder: str) -> Iterator[str]:
    for entry in sorted(os.scandir(folder), key=lambda e: os.fsencode(e.name)):
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith("."):
                yield from _streams(entry.path)
        elif entry.name.endswith(_EXTENSION) and entry.is_file(follow_symlinks=False):
            yield entry.path


def _points(file: str) -> Iterator[Point]:
    run, segment = "", -1
    with open(file, "rb") as lines:
        for line in lines:
            event = _event(line)
            if event.get("kind") == "open" and isinstance(event.get("slug"), str):
                run, segment = event["slug"], segment + 1
            elif event.get("kind") == "metric":
                value = event.get("value")
                value = _SPELLED.get(value, value) if isinstance(value, str) else value
                if _numbers(event.get("step"), event.get("ts_ms")) and isinstance(event.get("name"), str) and _is_number(value):
                    yield Point(run, segment, event["step"], event["ts_ms"], event["name"], value, event.get("metadata") or {})


def _event(line: bytes) -> Dict[str, Any]:
    """The members of a line; none of one that is no object or has no end."""
    if not line.endswith(b"\n"):
        return {}
    try:
        event = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _numbers(*values: Any) -> bool:
    return all(isinstance(v, int) and not isinstance(v, bool) for v in values)
