"""The annotations of the format: their texts and their metadata."""

from ._json import mend
from ._limits import MAX_ANNOTATION, cut, units


def lowering(head, graphs=(), tail=(), device=""):
    """A lowering block. A long one loses graph lines from the end."""
    graphs, tail = list(graphs), list(tail)
    kept, more = list(graphs), ""
    total = units("lowering: " + head) + sum(1 + units(line) for line in graphs + tail)
    while kept and total + len(more) > MAX_ANNOTATION:
        total -= 1 + units(kept.pop())
        more = "\n... %d more lines" % (len(graphs) - len(kept))
    text = "lowering: " + head + "".join("\n" + line for line in kept) + more
    return text + "".join("\n" + line for line in tail), {"device": device}


def memory_plan(text, parts=None):
    return "memory: " + text, parts


def memory_retry(step, what):
    return "memory: allocation failed at step %d; %s" % (step, what), None


def memory_peak(peak, planned):
    return "memory: peak %s of %s planned" % (peak, planned), None


def stacking(text, degrees=None):
    return "stacking " + text, degrees


def stage(from_, to):
    return "stage %s -> %s" % (from_, to), {"from": from_, "to": to}


def checkpoint(location, seconds=None):
    location = cut(mend(str(location)))
    metadata = {"checkpoint": location}
    if seconds is not None:
        metadata["seconds"] = float(seconds)
    return "checkpoint " + location, metadata


def resumed(location, changed=()):
    location = cut(mend(str(location)))
    lines = _cut_lines(list(changed), MAX_ANNOTATION)
    return "resumed from " + location + "".join("\n" + line for line in lines), {"checkpoint": location, "changed": lines}


def _cut_lines(lines, limit):
    n = 0
    for i, line in enumerate(lines):
        n += units(line) + 1
        if n > limit - 24 and (i < len(lines) - 1 or n > limit):
            return lines[:i] + ["... %d more lines" % (len(lines) - i)]
    return lines


def source_changed(path, from_="", to=""):
    """A line of resumed; an empty value means that the file is new or gone."""
    return _changed("source", path, from_, to)


def knob_changed(name, from_="", to=""):
    """A line of resumed; an empty value means that the knob is new or gone."""
    return _changed("knob", name, from_, to)


def _changed(what, name, from_, to):
    if from_ == "":
        return "%s %s is new" % (what, name)
    if to == "":
        return "%s %s is gone" % (what, name)
    return "%s %s: %s -> %s" % (what, name, from_, to)


def interrupted(signal, step):
    return "interrupted by %s at step %d" % (signal, step), {"signal": signal}


def failed(message):
    return "failed: " + message, {"error": cut(mend(message))}
