"""A process that works on a study, for tests: python -m tests.study_worker WHAT PATH."""

import os
import sys
import time

import foldlog


def budget(path):
    """Works until the study has 24 trials."""
    with foldlog.create_study(path, seed=1, exist_ok=True) as study:
        study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, budget=24)


def hang(path):
    """Asks for a trial and says so, then waits to be killed."""
    study = foldlog.create_study(path, seed=1, exist_ok=True, lease=1, retries=1)
    trial = study.ask()
    x = trial.suggest_float("x", -5, 5)
    trial.report(0.5, 1)
    print(trial.number, x, study._session._process.pid, flush=True)
    time.sleep(600)


def fork(path):
    """As hang, with a forked child that outlives this process."""
    study = foldlog.create_study(path, seed=1, exist_ok=True, lease=60, retries=1)
    trial = study.ask()
    child = os.fork()
    if child == 0:
        try:
            study.ask()
        except foldlog.SessionEnded:
            time.sleep(600)
        os._exit(1)
    print(trial.number, child, study._session._process.pid, flush=True)
    time.sleep(600)


globals()[sys.argv[1]](sys.argv[2])
