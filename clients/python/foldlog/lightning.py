"""The logger for PyTorch Lightning's Trainer (lightning.pytorch or pytorch_lightning).

    from foldlog.lightning import FoldlogLogger

    trainer = Trainer(logger=FoldlogLogger("my-run", to="jsonl:run.jsonl"))

Importing this module imports Lightning.
"""

from __future__ import annotations

import importlib
import sys
import weakref
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Union

from .callbacks import numbers
from .run import Run, open

if TYPE_CHECKING:
    from .run import Targets


def _library() -> Any:
    for package in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return importlib.import_module(package + ".loggers.logger"), importlib.import_module(package + ".utilities.rank_zero")
        except ImportError:
            continue
    raise ImportError("neither lightning nor pytorch_lightning is installed")


_loggers, _ranks = _library()
_Logger: Any = _loggers.Logger


class FoldlogLogger(_Logger):  # type: ignore[misc]
    """Writes what a Trainer logs to a run, which is opened when there is something to
    write, in the first process of a distributed training alone.

    slug, to, description and metadata are those of foldlog.open, as are other
    arguments. Hyperparameters that Lightning logs first are the knobs of the run.

    The run ends with the program; `logger.experiment.done()` ends it before. Trainers
    that use a logger one after another, as fit and test do, write to one run.
    """

    def __init__(self, slug: str, to: Targets = None, description: str = "", metadata: Optional[Mapping[str, Any]] = None, **options: Any) -> None:
        super().__init__()
        self._slug, self._to, self._description = slug, to, description
        self._metadata: Dict[str, Any] = dict(metadata or {})
        self._options = options
        self._run: Optional[Run] = None
        self._step = 0
        self._checkpoint = ""

    @property
    def name(self) -> str:
        """The slug of the run, which is also the folder of its checkpoints."""
        return self._slug

    @property
    def version(self) -> str:
        """Empty: a run that is resumed is the same one."""
        return ""

    @property
    def experiment(self) -> Any:
        """The foldlog.Run, to do more with; in processes that write nothing Lightning's stand-in."""
        return self._open()

    @_ranks.rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def log_hyperparams(self, params: Union[Mapping[str, Any], Namespace], *args: Any, **kwargs: Any) -> None:
        """Adds knobs to the metadata of the run; once it is open, as an annotation."""
        knobs = _plain(vars(params) if isinstance(params, Namespace) else params)
        if self._run is None:
            self._metadata["knobs"] = {**self._metadata.get("knobs", {}), **knobs}
        elif knobs != self._metadata.get("knobs"):
            self._run.annotate(self._step, "hyperparameters", {"knobs": knobs})

    @_ranks.rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def log_metrics(self, metrics: Mapping[str, Any], step: Optional[int] = None) -> None:
        """Writes numbers at a step, the latest one if there is none."""
        self._step = self._step if step is None else step
        self._open().metrics(self._step, numbers(metrics))

    @_ranks.rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """Writes where a checkpoint is."""
        keeper = checkpoint_callback() if isinstance(checkpoint_callback, weakref.ref) else checkpoint_callback
        path = getattr(keeper, "last_model_path", "") or getattr(keeper, "best_model_path", "")
        if path and path != self._checkpoint:
            self._checkpoint = path
            self._open().checkpoint(self._step, path)

    @_ranks.rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def finalize(self, status: str) -> None:
        """Writes that Ctrl-C ended a fit, which Lightning may keep to itself."""
        if self._run is not None and status != "success" and isinstance(sys.exc_info()[1], KeyboardInterrupt):
            self._run.interrupted("SIGINT", self._step)

    @_loggers.rank_zero_experiment  # type: ignore[untyped-decorator, unused-ignore]
    def _open(self) -> Run:
        if self._run is None:
            self._run = open(self._slug, self._description, self._metadata, self._to, **self._options)
        return self._run


def _plain(value: Any) -> Any:
    """What JSON has for a value; its text if there is nothing."""
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
