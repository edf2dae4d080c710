"""Works on a journal file with Debian's Optuna: story.py write FILE | same FILE OTHER"""

import math
import sys

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.storages import JournalFileStorage
from optuna.storages import JournalStorage

optuna.logging.set_verbosity(optuna.logging.ERROR)
FIELDS = ["number", "state", "values", "params", "distributions", "user_attrs", "system_attrs", "intermediate_values", "datetime_start", "datetime_complete"]


def open_file(path):
    return JournalStorage(JournalFileStorage(path))


def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    n = trial.suggest_int("n", 1, 9, step=2)
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    q = trial.suggest_float("q", 0, 1, step=0.25)
    c = trial.suggest_categorical("c", [None, True, 3, 0.5, "text"])
    trial.set_user_attr("note", {"list": [1, None, "ü"], "nan": math.nan})
    for step, value in enumerate([x, math.nan, math.inf, -math.inf]):
        trial.report(value, step)
    if trial.number == 1:
        raise optuna.TrialPruned()
    if trial.number == 2:
        raise ValueError("no luck")
    return x * n + lr + q + (c is None)


def write(path):
    storage = open_file(path)
    study = optuna.create_study(storage=storage, study_name="one", sampler=optuna.samplers.RandomSampler(seed=1))
    study.enqueue_trial({"x": 1.5}, user_attrs={"queued": True})
    study.optimize(objective, n_trials=5, catch=(ValueError,))
    study.set_user_attr("when", [1, 2.5])
    study.add_trial(optuna.create_trial(params={"c": "b"}, distributions={"c": CategoricalDistribution(["a", "b"])}, value=math.inf))
    study.enqueue_trial({"x": 2.5})
    study.ask({"z": optuna.distributions.FloatDistribution(0, 1)})
    gone = optuna.create_study(storage=storage, study_name="gone")
    gone.optimize(objective, n_trials=1)
    optuna.delete_study(study_name="gone", storage=storage)
    two = optuna.create_study(storage=storage, study_name="two", directions=["minimize", "maximize"])
    two.optimize(lambda t: (t.suggest_float("a", 0, 1), t.suggest_float("b", 0, 1)), n_trials=4)


def described(storage):
    for s in storage.get_all_studies():
        yield repr((s.study_name, s.directions, s.user_attrs, s.system_attrs))
        for t in storage.get_all_trials(s._study_id):
            order = {"params", "distributions", "user_attrs", "system_attrs"}
            yield repr([(f, sorted(getattr(t, f).items()) if f in order else getattr(t, f)) for f in FIELDS])


def same(path, other):
    a, b = list(described(open_file(path))), list(described(open_file(other)))
    assert len(a) == len(b), (len(a), len(b))
    for x, y in zip(a, b):
        assert x == y, f"\n{x}\n{y}"
    study = optuna.load_study(study_name="one", storage=open_file(other))
    before = len(study.trials)
    study.optimize(objective, n_trials=1)  # it goes on
    assert len(study.trials) == before + 1


{"write": write, "same": same}[sys.argv[1]](*sys.argv[2:])
