"""How values are spelled: JSON as the format has it, the same bytes as in Go."""

import json
import math
import operator
import os

from ._limits import MetadataError

# How deep metadata may be nested, less than what readers take.
MAX_DEPTH = 100

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def mend(text):
    """Makes text fit for JSON: half a surrogate pair becomes U+FFFD."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def string(text):
    """Spells a string; only quote, backslash and control characters are escaped."""
    return _encode(mend(text))


def floating(value):
    """Spells a float with the fewest digits that read back the same.

    It is plain between 1e-5 and 1e16 and scientific outside; what is not finite
    is one of the strings "NaN", "Infinity" and "-Infinity".
    """
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign = "-" if value < 0 else ""
    digits, before = _shortest(abs(value))
    return sign + _place(digits, before)


def _shortest(value):
    """The digits of a positive float, and how many are before the point."""
    mantissa, _, exponent = float.__repr__(value).partition("e")  # numpy's floats have a repr of their own
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    before = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    before -= len(digits) - len(stripped)
    return stripped.rstrip("0") or "0", before


def _place(digits, before):
    n = len(digits)
    if 0 < before <= 16:
        if n <= before:
            return digits + "0" * (before - n) + ".0"
        return digits[:before] + "." + digits[before:]
    if -5 < before <= 0:
        return "0." + "0" * -before + digits
    mantissa = digits[0] + ("." + digits[1:] if n > 1 else "")
    return "%se%d" % (mantissa, before - 1)


def number(value):
    """Spells the value of a metric.

    Integers stay integers, also those of numpy and of tensors with one element;
    those beyond 64 bits become floats, as they do for every reader.
    """
    if isinstance(value, float):
        return floating(value)
    if isinstance(value, (str, bytes)):
        raise TypeError("a metric's value is a number, not %r" % (value,))
    try:
        whole = int(operator.index(value))  # a truth value, say, before Python 3.10
    except TypeError:
        return floating(float(value))
    if -(1 << 63) <= whole < 1 << 64:
        return str(whole)
    return floating(_large(whole))


def _large(whole):
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def step(value):
    """Reads a step: an integer of 64 bits."""
    whole = int(operator.index(value))
    if not -(1 << 63) <= whole < 1 << 63:
        raise OverflowError("a step has 64 bits, and %d does not fit" % whole)
    return whole


def metadata(value):
    """Spells metadata: a mapping with string keys, "" for one without members."""
    if not value:
        return ""
    if not hasattr(value, "items"):
        raise MetadataError("metadata is a mapping, not %s" % type(value).__name__)
    return _value(value, 0)


def _value(value, depth):
    if depth > MAX_DEPTH:
        raise MetadataError("metadata is nested deeper than %d" % MAX_DEPTH)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, float):
        return floating(value)
    if hasattr(value, "items"):
        return "{%s}" % ",".join(_member(k, v, depth + 1) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ",".join(_value(v, depth + 1) for v in value)
    if isinstance(value, os.PathLike):
        return string(os.fspath(value))
    return _scalar(value)


def _member(key, value, depth):
    if not isinstance(key, str):
        raise MetadataError("a key of metadata is a string, not %r" % (key,))
    return string(key) + ":" + _value(value, depth)


def _scalar(value):
    """Spells what behaves like a number, as a numpy scalar does."""
    try:
        return str(int(operator.index(value)))
    except TypeError:
        pass
    try:
        return floating(float(value))
    except (TypeError, ValueError):
        raise MetadataError("metadata cannot hold %r" % (value,)) from None
