"""Foldlog: the metrics stream of a training run, written from Python, the
trials of a study, and the checkpoints of data generation.

    import foldlog

    with foldlog.open("my-run", to="jsonl:run.jsonl", metadata={"knobs": {"lr": 0.001}}) as run:
        for step in range(1000):
            run.metric(step, "train/loss", loss, {"split": "train"})

What the lines are is told in docs/format/metrics.md of the Foldlog project, and
is the same here as in its Go library, byte for byte. Nothing here needs more
than the standard library.
"""

from . import callbacks
from ._limits import LimitError, MetadataError, MetricNameError, SlugError
from ._report import Report, TargetReport
from ._targets import TargetError
from .datagen import Blob, DatagenEnded, DatagenError, DatagenLog, InvalidStep, Item, ItemChanged, ItemHeld
from ._session import AlreadyExists, BudgetSpent, InvalidRequest, NotFound, SessionEnded, StudyError, TrialLost
from .reading import Point, read_points
from .run import Closed, Experiment, Interrupted, Run, open
from .study import FinishedTrial, Study, Trial, TrialPruned, create_study, open_study

__all__ = [
    "AlreadyExists",
    "Blob",
    "BudgetSpent",
    "Closed",
    "DatagenEnded",
    "DatagenError",
    "DatagenLog",
    "Experiment",
    "FinishedTrial",
    "Interrupted",
    "InvalidRequest",
    "InvalidStep",
    "Item",
    "ItemChanged",
    "ItemHeld",
    "LimitError",
    "MetadataError",
    "MetricNameError",
    "NotFound",
    "Point",
    "Report",
    "Run",
    "SessionEnded",
    "SlugError",
    "Study",
    "StudyError",
    "TargetError",
    "TargetReport",
    "Trial",
    "TrialLost",
    "TrialPruned",
    "callbacks",
    "create_study",
    "open",
    "open_study",
    "read_points",
]

__version__ = "0.1.0"
