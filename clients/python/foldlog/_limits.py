"""The limits of the format, and the errors of what is beyond them."""

import unicodedata

MAX_ANNOTATION = 16_000  # UTF-16 units of an annotation's text or a description
MAX_METADATA = 64 << 10  # bytes of an open's or a metric's metadata
MAX_NOTE_METADATA = 256 << 10  # bytes of an annotation's metadata
MAX_NAME = 1 << 10  # bytes of a metric's name
MAX_SLUG = 200  # bytes of a slug
MAX_LINE = 1 << 20  # bytes of a line without its newline


class LimitError(ValueError):
    """Something is larger than the format allows and cannot be cut."""


class MetadataError(ValueError):
    """Metadata that is not a mapping of strings to JSON values."""


class SlugError(ValueError):
    """A slug that is empty, too long, . or .., or holds / or a control character."""


class MetricNameError(ValueError):
    """A metric name that is empty, too long or not Unicode."""


def utf8(text):
    """Length in bytes; half a surrogate pair cannot be spelled."""
    return len(text.encode("utf-8"))


def check_slug(slug):
    """Refuses what is not 1 to 200 bytes without / and control characters, . and .. ."""
    if not isinstance(slug, str) or not slug:
        raise SlugError("bad slug: it is empty")
    if slug in (".", ".."):
        raise SlugError("bad slug: %a cannot be part of an address" % slug)
    try:
        size = utf8(slug)
    except UnicodeEncodeError:
        raise SlugError("bad slug: %a is not Unicode" % slug) from None
    if size > MAX_SLUG:
        raise SlugError("bad slug: %d bytes, the most is %d" % (size, MAX_SLUG))
    for c in slug:
        if c == "/" or unicodedata.category(c) == "Cc":
            raise SlugError("bad slug: %a in %a" % (c, slug))


def check_name(name):
    """Refuses a metric name that is not 1 byte to 1 KiB of text."""
    if not isinstance(name, str) or not name:
        raise MetricNameError("bad metric name: it is empty")
    try:
        size = utf8(name)
    except UnicodeEncodeError:
        raise MetricNameError("bad metric name: %a is not Unicode" % name) from None
    if size > MAX_NAME:
        raise MetricNameError("bad metric name: %d bytes, the most is %d" % (size, MAX_NAME))


def check_metadata(what, text, limit):
    """Refuses spelled metadata beyond a limit in bytes."""
    if len(text) * 4 > limit and utf8(text) > limit:
        raise LimitError("%s: too large: %d bytes, the most is %d" % (what, utf8(text), limit))


def units(text):
    """Counts the UTF-16 units of a text."""
    return len(text) + sum(1 for c in text if c > "\uffff")


def cut(text, limit=MAX_ANNOTATION):
    """The longest beginning of at most that many UTF-16 units, whole characters."""
    if len(text) * 2 <= limit or units(text) <= limit:
        return text
    n = 0
    for i, c in enumerate(text):
        n += 2 if c > "\uffff" else 1
        if n > limit:
            return text[:i]
    return text


def count_sentence(files):
    """Stands for sources that do not fit."""
    return "%d files, too large to record" % files
