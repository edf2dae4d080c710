"""What became of the events of a run."""

from dataclasses import dataclass, field
from typing import List, Optional


@dataclass
class TargetReport:
    """What one target took."""

    target: str
    sent: int = 0  # events that arrived
    bytes: int = 0  # their size
    dropped: int = 0  # events that are lost to this target
    left: int = 0  # events that a server has not got and the file has
    retries: int = 0  # how often something was tried again
    page: str = ""  # where the server shows the run
    error: Optional[str] = None  # why events are dropped or left

    def __str__(self) -> str:
        text = "%s: %d events" % (self.target, self.sent)
        if self.dropped:
            text += ", %d dropped" % self.dropped
        if self.left:
            text += ", %d left in the file" % self.left
        return text + (": " + self.error if self.error else "")


@dataclass
class Report:
    """The end report of a run: one entry per target."""

    targets: List[TargetReport] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """How many events some target did not get."""
        return sum(t.dropped + t.left for t in self.targets)

    def __str__(self) -> str:
        return "\n".join(str(t) for t in self.targets)
