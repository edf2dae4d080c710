"""Ask and tell: hyper-parameter search in a study journal.

    import foldlog

    def objective(trial):
        lr = trial.suggest_float("lr", 1e-5, 0.1, log=True)
        return train(lr)

    with foldlog.create_study("search.atj", exist_ok=True) as study:
        study.optimize(objective, n_trials=100)
        print(study.best_trial.params)

Any number of processes, on any machine that shares the directory, may do this at
once with one journal.
"""

from __future__ import annotations

import logging
import math
import operator
import os
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, SupportsFloat, Tuple, Type, TypeVar, Union

from ._session import BudgetSpent, InvalidRequest, NotFound, StudyError, StudySession, TrialLost, connect

log = logging.getLogger("foldlog")

Path = Union[str, "os.PathLike[str]"]
Values = Union[SupportsFloat, Iterable[SupportsFloat]]
"""The value of a trial, or one for each objective; NaN and infinities are values."""

Errors = Union[Type[BaseException], Iterable[Type[BaseException]]]

T = TypeVar("T")

DEFAULT_LEASE = 60.0
"""Seconds that a trial may be silent before others take it for dead."""


class TrialPruned(Exception):
    """Raised by an objective to end its trial as pruned."""


def create_study(path: Path, name: Optional[str] = None, *, direction: Optional[str] = None, directions: Union[str, Iterable[str], None] = None,
                 metrics: Union[str, Iterable[str], None] = None, space: Optional[Mapping[str, Mapping[str, Any]]] = None,
                 seed: Optional[int] = None, sampler: Optional[str] = None, pruner: Optional[str] = None, exist_ok: bool = False,
                 lease: float = DEFAULT_LEASE, retries: int = 0, binary: Optional[Path] = None) -> Study:
    """Creates a study, and the journal at path if there is none.

    direction is "minimize" or "maximize", directions a list of them, one for
    each objective; metrics are the names of the objectives. space declares
    parameters as a space file does, {"lr": {"type": "float", "low": 0, "high": 1}};
    without it the trials say what they suggest. sampler and pruner are texts as
    in the guide on search, "tpe:startup=20". With exist_ok a study of that name
    is opened as it is; else AlreadyExists is raised.

    For lease, retries and binary see open_study.
    """
    if direction is not None:
        if directions is not None:
            raise InvalidRequest("direction and directions exclude each other")
        directions = [direction]
    return _start(path, lease, retries, binary, "create", name=name, directions=_list(directions), metrics=_list(metrics), space=space,
                  seed=seed, sampler=sampler, pruner=pruner, open=exist_ok)


def open_study(path: Path, name: Optional[str] = None, *, lease: float = DEFAULT_LEASE, retries: int = 0,
               binary: Optional[Path] = None) -> Study:
    """Opens a study, the only one of the journal or that of the name.

    lease is how many seconds a trial of this process may be silent, should the
    process be killed, until others take it for dead. Trials that failed, of this
    process or of a dead one, are tried again retries times. binary is the foldlog
    command: FOLDLOG_BINARY, or that of PATH. NotFound if there is no such journal,
    study or command.
    """
    return _start(path, lease, retries, binary, "open", name=name)


def _start(path: Path, lease: float, retries: int, binary: Optional[Path], do: str, **fields: Any) -> Study:
    session = connect(path, lease, retries, binary)
    try:
        study = Study(session, session.call(do, **fields)["study"])
        study._again = (os.fspath(path), study.name, lease, retries, binary)
        return study
    except BaseException:
        session.close()
        raise


def _reopen(path: str, name: str, lease: float, retries: int, binary: Optional[Path]) -> Study:
    return open_study(path, name, lease=lease, retries=retries, binary=binary)


def _list(values: Union[str, Iterable[str], None]) -> Optional[List[str]]:
    return None if values is None else [values] if isinstance(values, str) else list(values)


@dataclass(frozen=True)
class FinishedTrial:
    """A trial as the journal has it, whatever its state."""

    number: int
    state: str  # waiting, running, paused, complete, pruned or failed
    values: List[float]  # one per objective, empty without a result
    params: Dict[str, Any]
    user_attrs: Dict[str, Any]
    reports: List[Tuple[int, List[float]]]  # (step, values), in the order reported
    error: str  # why it failed
    attempt: int  # from 1
    retry_of: Optional[int]  # the number of the trial that it repeats, or None
    started: float  # seconds since 1970, 0 if it was not
    ended: float

    @property
    def value(self) -> Optional[float]:
        """The value of the only objective, None without a result."""
        return self.values[0] if self.values else None


def _finished(raw: Dict[str, Any]) -> FinishedTrial:
    return FinishedTrial(
        raw["number"], raw["state"], [_number(v) for v in raw["values"]], raw["params"], raw["attrs"],
        [(r["step"], [_number(v) for v in r["values"]]) for r in raw["curve"]], raw["error"], raw["attempt"], raw["retry_of"],
        raw["started_ms"] / 1000, raw["ended_ms"] / 1000)


def _number(v: Any) -> float:
    return float(v)  # "NaN" and "Infinity" too


def _numbers(values: Any) -> List[Union[float, str]]:
    try:
        values = [values] if isinstance(values, (str, bytes, Mapping)) else list(values)
    except TypeError:
        values = [values]
    out: List[Union[float, str]] = []
    for v in values:
        try:
            v = float("not" if isinstance(v, (str, bytes)) else v)
        except (TypeError, ValueError, OverflowError):
            raise InvalidRequest("%r is not a number" % (v,)) from None
        out.append(v if math.isfinite(v) else "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity")
    return out


class Trial:
    """A trial that this process runs. Study.ask makes them. Every call can raise
    TrialLost, if others have taken the trial for dead, and SessionEnded."""

    def __init__(self, session: StudySession, raw: Dict[str, Any]) -> None:
        self._session = session
        self.number: int = raw["number"]
        self.attempt: int = raw["attempt"]
        self.params: Dict[str, Any] = dict(raw["params"])
        self.user_attrs: Dict[str, Any] = dict(raw["attrs"])

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False, step: Optional[float] = None) -> float:
        """A float from low to high, both inclusive: uniform in the logarithm
        with log, low plus a multiple of step with step. A range that makes no sense
        is an InvalidRequest."""
        dist = {"type": "float", "low": _float("low", low), "high": _float("high", high), "log": bool(log)}
        if step is not None:
            dist["step"] = _float("step", step)
        value = float(self._suggest(name, dist)["value"])
        self.params[name] = value
        return value

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> int:
        """An integer of 64 bits from low to high, both inclusive."""
        dist = {"type": "int", "low": _whole("low", low), "high": _whole("high", high), "log": bool(log)}
        if step != 1:
            dist["step"] = _whole("step", step)
        value = int(self._suggest(name, dist)["value"])
        self.params[name] = value
        return value

    def suggest_categorical(self, name: str, choices: Sequence[T]) -> T:
        """One of the choices, the object itself. They are stored as JSON."""
        choices = list(choices)
        answer = self._suggest(name, {"type": "categorical", "choices": choices})
        value = choices[answer["index"]]
        self.params[name] = value
        return value

    def suggest_bool(self, name: str) -> bool:
        """True or False."""
        self.params[name] = value = bool(self._suggest(name, {"type": "bool"})["value"])
        return value

    def _suggest(self, name: str, dist: Dict[str, Any]) -> Dict[str, Any]:
        answer: Dict[str, Any] = self._session.call("suggest", trial=self.number, name=name, dist=dist)
        return answer

    def report(self, value: Values, step: int) -> None:
        """Reports the intermediate value, or one for each objective, at a step
        from 0. It is on disk when the call returns."""
        self._session.call("report", trial=self.number, step=_whole("step", step), values=_numbers(value))

    def should_prune(self) -> bool:
        """Whether the study's pruner gives the trial up, by what has been
        reported."""
        return bool(self._session.call("should_prune", trial=self.number)["prune"])

    def set_user_attr(self, key: str, value: Any) -> None:
        """Notes something about the trial, as JSON."""
        self._session.call("set_attr", trial=self.number, key=key, value=value)
        self.user_attrs[key] = value


def _whole(what: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(operator.index(value))
    except TypeError:
        raise InvalidRequest("%s: %r is no integer" % (what, value)) from None


def _float(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest("%s: %r is not a number" % (what, value)) from None


class Study:
    """A study. Threads may share it; a forked process opens its own, and so does one
    that gets it pickled.

    As a context manager it closes itself. Trials that were asked for and not
    told have failed when a study is closed or its process ends.
    """

    def __init__(self, session: StudySession, raw: Dict[str, Any]) -> None:
        self._session = session
        self._stop = False
        self._again: Tuple[Any, ...] = ()
        self.name: str = raw["name"]
        self.directions: List[str] = raw["directions"]
        self.metrics: List[str] = raw["metrics"]

    def __reduce__(self) -> Tuple[Callable[..., Study], Tuple[Any, ...]]:
        return _reopen, self._again

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session. Trials that were not told have failed."""
        self._session.close()

    def ask(self, *, budget: Optional[int] = None) -> Trial:
        """Starts a trial: one that waits, else a new one. With a budget no
        trial beyond that number is created in the study, whoever asks;
        BudgetSpent is raised."""
        return Trial(self._session, self._session.ask(budget))

    def tell(self, trial: Trial, values: Optional[Values] = None, *, state: Optional[str] = None,
             error: Optional[str] = None) -> FinishedTrial:
        """Ends a trial: with its value, or one for each objective; or with the
        state "pruned" or "failed", and the error that made it fail. NaN is a
        value, the worst. Returns the trial as it is recorded. TrialLost says
        that somebody else has it."""
        if state is None:
            state = "failed" if error is not None else "complete"
        numbers = None if values is None else _numbers(values)
        return _finished(self._session.call("tell", trial=trial.number, state=state, values=numbers, error=error))

    def optimize(self, objective: Callable[[Trial], Values], n_trials: Optional[int] = None, *, budget: Optional[int] = None,
                 timeout: Optional[float] = None, catch: Errors = (),
                 callbacks: Iterable[Callable[[Study, FinishedTrial], object]] = ()) -> None:
        """Runs trials of objective(trial), which returns the value or values,
        one after another: n_trials of them, or until the study has budget
        trials in all, or for timeout seconds.

        An objective that raises TrialPruned is pruned. One that raises
        something else has failed; that is raised again unless it is in catch.
        A trial that somebody else has by now is no error: the logger "foldlog"
        warns of it with the values that were not recorded, and the next trial
        follows. callbacks are called with the study and each finished trial.
        stop() ends the loop.
        """
        if n_trials is None and budget is None and timeout is None:
            raise InvalidRequest("optimize without n_trials, budget or timeout would never end")
        self._stop = False
        end = None if timeout is None else time.monotonic() + timeout
        done = 0
        while not self._stop and (n_trials is None or done < n_trials) and (end is None or time.monotonic() < end):
            try:
                trial = self.ask(budget=budget)
            except BudgetSpent:
                return
            finished = self._run(trial, objective, catch if isinstance(catch, type) else tuple(catch))
            done += 1
            for callback in callbacks:
                callback(self, finished)

    def _run(self, trial: Trial, objective: Callable[[Trial], Values], catch: Any) -> FinishedTrial:
        error: Optional[BaseException] = None
        outcome: Dict[str, Any]
        try:
            outcome = {"state": "complete", "values": _numbers(objective(trial))}
        except TrialPruned:
            outcome = {"state": "pruned"}
        except BaseException as e:
            error, outcome = e, {"state": "failed", "error": "%s: %s" % (type(e).__name__, e)}
        caught = error is None or isinstance(error, catch)
        try:
            finished = _finished(self._session.call("tell", trial=trial.number, **outcome))
        except TrialLost as lost:
            if not caught and not isinstance(error, TrialLost):
                raise error from None  # type: ignore[misc]
            log.warning("%s", lost.message)
            return self.trial(trial.number)
        except StudyError:
            if caught:
                raise
            raise error from None  # type: ignore[misc]
        if error is not None and not caught:
            raise error
        return finished

    def stop(self) -> None:
        """Ends optimize after the trial that runs."""
        self._stop = True

    def enqueue(self, params: Mapping[str, Any], *, key: Optional[str] = None) -> int:
        """Creates a trial with these parameters that the next one to ask gets.
        With a key that is done once, however often it is called. Returns its
        number."""
        return int(self._session.call("enqueue", params=dict(params), key=key)["number"])

    @property
    def trials(self) -> List[FinishedTrial]:
        """All trials of the study, of every process."""
        return self.get_trials()

    def get_trials(self, *states: str) -> List[FinishedTrial]:
        """The trials that are in one of the states, all without states."""
        return [_finished(t) for t in self._session.call("trials", states=list(states))]

    def trial(self, number: int) -> FinishedTrial:
        """One trial of the study. NotFound if there is none of that number."""
        return _finished(self._session.call("trial", trial=number))

    @property
    def best_trials(self) -> List[FinishedTrial]:
        """The best trials: the Pareto front of several objectives, the best one
        of one. Empty until a trial is complete."""
        return [_finished(t) for t in self._session.call("best")]

    @property
    def best_trial(self) -> FinishedTrial:
        """The best trial of a study with one objective. NotFound is raised
        until one is complete."""
        if len(self.directions) != 1:
            raise InvalidRequest("study %r has %d objectives" % (self.name, len(self.directions)), "best_trials is the Pareto front")
        best = self.best_trials
        if not best:
            raise NotFound("study %r has no complete trial" % self.name)
        return best[0]

    @property
    def best_value(self) -> float:
        """The value of the best trial."""
        return self.best_trial.values[0]

    @property
    def best_params(self) -> Dict[str, Any]:
        """The parameters of the best trial."""
        return self.best_trial.params

    @property
    def user_attrs(self) -> Dict[str, Any]:
        """What is noted about the study."""
        return dict(self._session.call("study")["attrs"])

    def set_user_attr(self, key: str, value: Any) -> None:
        """Notes something about the study, as JSON."""
        self._session.call("set_attr", key=key, value=value)
