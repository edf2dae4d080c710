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

import math
import threading
import time
from dataclasses import dataclass

from ._session import BudgetSpent, InvalidRequest, NotFound, StudyError, connect

DEFAULT_LEASE = 60.0
"""Seconds that a trial may be silent before others take it for dead."""


class TrialPruned(Exception):
    """Raised by an objective to end its trial as pruned."""


def create_study(path, name=None, *, direction=None, directions=None, metrics=None, space=None, seed=None, sampler=None, pruner=None,
                 exist_ok=False, lease=DEFAULT_LEASE, retries=0, binary=None):
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
    if isinstance(metrics, str):
        metrics = [metrics]
    return _start(path, lease, retries, binary, "create", name=name, directions=_list(directions), metrics=_list(metrics), space=space,
                  seed=seed, sampler=sampler, pruner=pruner, open=exist_ok)


def open_study(path, name=None, *, lease=DEFAULT_LEASE, retries=0, binary=None):
    """Opens a study, the only one of the journal or that of the name.

    lease is how many seconds a trial of this process may be silent, should the
    process be killed, until others take it for dead. Trials that failed, of this
    process or of a dead one, are tried again retries times. binary is the foldlog
    command: FOLDLOG_BINARY, or that of PATH.
    """
    return _start(path, lease, retries, binary, "open", name=name)


def _start(path, lease, retries, binary, do, **fields):
    session = connect(path, lease, retries, binary)
    try:
        return Study(session, session.call(do, **fields)["study"])
    except BaseException:
        session.close()
        raise


def _list(values):
    return None if values is None else list(values)


@dataclass(frozen=True)
class FinishedTrial:
    """A trial as the journal has it, whatever its state."""

    number: int
    state: str  # waiting, running, paused, complete, pruned or failed
    values: list  # one per objective, empty without a result
    params: dict
    user_attrs: dict
    reports: list  # (step, values), in the order reported
    error: str  # why it failed
    attempt: int  # from 1
    retry_of: object  # the number of the trial that it repeats, or None
    started: float  # seconds since 1970, 0 if it was not
    ended: float

    @property
    def value(self):
        """The value of the only objective, None without a result."""
        return self.values[0] if self.values else None


def _finished(raw):
    return FinishedTrial(
        raw["number"], raw["state"], [_number(v) for v in raw["values"]], raw["params"], raw["attrs"],
        [(r["step"], [_number(v) for v in r["values"]]) for r in raw["curve"]], raw["error"], raw["attempt"], raw["retry_of"],
        raw["started_ms"] / 1000, raw["ended_ms"] / 1000)


def _number(v):
    return float(v)  # "NaN" and "Infinity" too


def _numbers(values):
    try:
        values = list(values)
    except TypeError:
        values = [values]
    out = []
    for v in values:
        try:
            v = float(v)
        except (TypeError, ValueError):
            raise InvalidRequest("%r is not a number" % (v,)) from None
        out.append(v if math.isfinite(v) else "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity")
    return out


class Trial:
    """A trial that this process runs. Study.ask makes them."""

    def __init__(self, session, raw):
        self._session = session
        self.number = raw["number"]
        self.attempt = raw["attempt"]
        self.params = dict(raw["params"])
        self.user_attrs = dict(raw["attrs"])

    def suggest_float(self, name, low, high, *, log=False, step=None):
        """A float from low to high, both inclusive: uniform in the logarithm
        with log, low plus a multiple of step with step."""
        dist = {"type": "float", "low": float(low), "high": float(high), "log": bool(log)}
        if step is not None:
            dist["step"] = float(step)
        value = float(self._suggest(name, dist)["value"])
        self.params[name] = value
        return value

    def suggest_int(self, name, low, high, *, log=False, step=1):
        """An integer of 64 bits from low to high, both inclusive."""
        dist = {"type": "int", "low": int(low), "high": int(high), "log": bool(log)}
        if step != 1:
            dist["step"] = int(step)
        value = int(self._suggest(name, dist)["value"])
        self.params[name] = value
        return value

    def suggest_categorical(self, name, choices):
        """One of the choices, the object itself. They are stored as JSON."""
        choices = list(choices)
        answer = self._suggest(name, {"type": "categorical", "choices": choices})
        value = choices[answer["index"]]
        self.params[name] = value
        return value

    def suggest_bool(self, name):
        """True or False."""
        self.params[name] = value = bool(self._suggest(name, {"type": "bool"})["value"])
        return value

    def _suggest(self, name, dist):
        return self._session.call("suggest", trial=self.number, name=name, dist=dist)

    def report(self, value, step):
        """Reports the intermediate value, or one for each objective, at a step
        from 0."""
        self._session.call("report", trial=self.number, step=int(step), values=_numbers(value))

    def should_prune(self):
        """Whether the study's pruner gives the trial up, by what has been
        reported."""
        return self._session.call("should_prune", trial=self.number)["prune"]

    def set_user_attr(self, key, value):
        """Notes something about the trial, as JSON."""
        self._session.call("set_attr", trial=self.number, key=key, value=value)
        self.user_attrs[key] = value


class Study:
    """A study. Threads may share it; a forked process opens its own.

    As a context manager it closes itself. Trials that were asked for and not
    told have failed when a study is closed or its process ends.
    """

    def __init__(self, session, raw):
        self._session = session
        self._lock = threading.Lock()
        self._stop = False
        self.name = raw["name"]
        self.directions = raw["directions"]
        self.metrics = raw["metrics"]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        """Ends the session."""
        self._session.close()

    def ask(self, *, budget=None):
        """Starts a trial: one that waits, else a new one. With a budget no
        trial beyond that number is created in the study, whoever asks;
        BudgetSpent is raised."""
        return Trial(self._session, self._session.call("ask", budget=budget))

    def tell(self, trial, values=None, *, state=None, error=None):
        """Ends a trial: with its value, or one for each objective; or with the
        state "pruned" or "failed", and the error that made it fail. NaN is a
        value, the worst. Returns the trial as it is recorded. TrialLost says
        that somebody else has it."""
        if state is None:
            state = "failed" if error is not None else "complete"
        values = None if values is None else _numbers(values)
        return _finished(self._session.call("tell", trial=trial.number, state=state, values=values, error=error))

    def optimize(self, objective, n_trials=None, *, budget=None, timeout=None, catch=(), callbacks=()):
        """Runs trials of objective(trial), which returns the value or values,
        one after another: n_trials of them, or until the study has budget
        trials in all, or for timeout seconds.

        An objective that raises TrialPruned is pruned. One that raises
        something else has failed; that is raised again unless it is in catch.
        callbacks are called with the study and each finished trial. stop() ends
        the loop.
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
            finished = self._run(trial, objective, tuple(catch))
            done += 1
            for callback in callbacks:
                callback(self, finished)

    def _run(self, trial, objective, catch):
        try:
            values = _numbers(objective(trial))
        except TrialPruned:
            return self.tell(trial, state="pruned")
        except BaseException as e:
            try:
                finished = self.tell(trial, state="failed", error="%s: %s" % (type(e).__name__, e))
            except StudyError:
                if isinstance(e, catch):
                    raise
                raise e from None
            if isinstance(e, catch):
                return finished
            raise
        return _finished(self._session.call("tell", trial=trial.number, state="complete", values=values))

    def stop(self):
        """Ends optimize after the trial that runs."""
        self._stop = True

    def enqueue(self, params, *, key=None):
        """Creates a trial with these parameters that the next one to ask gets.
        With a key that is done once, however often it is called. Returns its
        number."""
        return self._session.call("enqueue", params=dict(params), key=key)["number"]

    @property
    def trials(self):
        """All trials of the study, of every process."""
        return self.get_trials()

    def get_trials(self, *states):
        """The trials that are in one of the states."""
        return [_finished(t) for t in self._session.call("trials", states=list(states))]

    def trial(self, number):
        """One trial of the study."""
        return _finished(self._session.call("trial", trial=number))

    @property
    def best_trials(self):
        """The best trials: the Pareto front of several objectives, the best one
        of one. Empty until a trial is complete."""
        return [_finished(t) for t in self._session.call("best")]

    @property
    def best_trial(self):
        """The best trial of a study with one objective. NotFound is raised
        until one is complete."""
        if len(self.directions) != 1:
            raise InvalidRequest("study %r has %d objectives" % (self.name, len(self.directions)), "best_trials is the Pareto front")
        best = self.best_trials
        if not best:
            raise NotFound("study %r has no complete trial" % self.name)
        return best[0]

    @property
    def best_value(self):
        """The value of the best trial."""
        return self.best_trial.value

    @property
    def best_params(self):
        """The parameters of the best trial."""
        return self.best_trial.params

    @property
    def user_attrs(self):
        """What is noted about the study."""
        return self._session.call("study")["attrs"]

    def set_user_attr(self, key, value):
        """Notes something about the study, as JSON."""
        self._session.call("set_attr", key=key, value=value)
