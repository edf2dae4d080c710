"""Callbacks for training libraries. Nothing is imported until one is made.

    foldlog.callbacks.lightning(run)     PyTorch Lightning
    foldlog.callbacks.huggingface(run)   Hugging Face Trainer
    foldlog.callbacks.keras(run)         Keras

A callback writes to a run and does not end it: `with foldlog.open(...) as run`
does, also after an exception. Of the processes of a distributed training those of
Lightning and Hugging Face write in the first one alone: open the run there, and give
the others None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

if TYPE_CHECKING:
    from ..run import Run


def lightning(run: Optional[Run], every: Optional[int] = None) -> Any:
    """A callback for Lightning's Trainer; see _lightning."""
    from ._lightning import make

    return make(run, every)


def huggingface(run: Optional[Run]) -> Any:
    """A callback for the Trainer of transformers; see _huggingface."""
    from ._huggingface import make

    return make(run)


def keras(run: Run, every: int = 100) -> Any:
    """A callback for Keras's fit; see _keras."""
    from ._keras import make

    return make(run, every)


def numbers(values: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """The members of a mapping that are one number each, by name."""
    found = {}
    for name, value in (values or {}).items():
        if isinstance(value, (str, bytes)) or value is None:
            continue
        try:
            found[name] = value if isinstance(value, (int, float)) else _scalar(value)
        except (TypeError, ValueError, RuntimeError):
            continue  # a tensor with several elements, a list, a nested mapping
    return found


def _scalar(value: Any) -> Any:
    item = getattr(value, "item", None)
    return item() if callable(item) else float(value)
