"""Makes the calls of a JSON file on a run: python3 -m tests.calls CALLS TARGET...

The same file drives the Go library, whose lines must be the same.
"""

import json
import sys

import foldlog


def value(raw):
    """A number as the file has it: integers, floats, or a word."""
    return float(raw) if isinstance(raw, str) else raw


def play(calls, targets):
    opening, rest = calls[0], calls[1:]
    run = foldlog.open(opening["slug"], opening["description"], opening["metadata"], to=targets, runtime=opening["runtime"])
    for call in rest:
        kind = call.pop("do")
        if kind == "metric":
            call["value"] = value(call["value"])
        if kind == "set_metadata":
            run.set_metadata(call["runtime"])
        elif kind == "done":
            run.done()
        else:
            getattr(run, kind)(**call)
    return run.close()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        report = play(json.load(f), sys.argv[2:])
    print(report)
    sys.exit(1 if report.lost else 0)
