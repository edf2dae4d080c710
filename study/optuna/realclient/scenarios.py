"""What people do with Optuna, done on Foldlog's server with the real client."""

import math
import os

import numpy as np
import optuna
import pytest
from optuna import TrialPruned
from optuna.distributions import CategoricalDistribution
from optuna.pruners import HyperbandPruner
from optuna.pruners import MedianPruner
from optuna.pruners import PatientPruner
from optuna.pruners import PercentilePruner
from optuna.pruners import SuccessiveHalvingPruner
from optuna.pruners import ThresholdPruner
from optuna.pruners import WilcoxonPruner
from optuna.samplers import BruteForceSampler
from optuna.samplers import CmaEsSampler
from optuna.samplers import GridSampler
from optuna.samplers import NSGAIISampler
from optuna.samplers import NSGAIIISampler
from optuna.samplers import PartialFixedSampler
from optuna.samplers import QMCSampler
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from server import Server

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    s = Server(str(tmp_path_factory.mktemp("journal") / "s.atj"), os.environ["FOLDLOG"])
    yield s
    s.stop()


def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    y = trial.suggest_int("y", 0, 8, step=2)
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    z = trial.suggest_categorical("z", ["a", "b", None])
    return x**2 + y + lr + (z is None)


def same_elsewhere(server, study):
    """Another client sees the same trials."""
    theirs = optuna.load_study(study_name=study.study_name, storage=server.proxy()).trials
    assert theirs == study.trials


@pytest.mark.parametrize("sampler", [
    RandomSampler(seed=1), TPESampler(seed=1, n_startup_trials=5), TPESampler(seed=1, n_startup_trials=5, multivariate=True, group=True),
    QMCSampler(seed=1, warn_independent_sampling=False), BruteForceSampler(seed=1),
    GridSampler({"x": [0.0, 1.0], "y": [0, 2], "lr": [1e-3], "z": ["a", None]}),
], ids=lambda s: type(s).__name__)
def test_samplers(server, sampler):
    study = optuna.create_study(storage=server.proxy(), sampler=sampler)

    def brute(trial):
        # One parameter: the client forgets the order of several, which this
        # sampler needs, whatever the server.
        return trial.suggest_int("n", 0, 9)

    study.optimize(brute if isinstance(sampler, BruteForceSampler) else objective, n_trials=8)
    assert len(study.trials) == 8 and all(t.state == TrialState.COMPLETE for t in study.trials)
    assert study.best_value == min(t.value for t in study.trials)
    same_elsewhere(server, study)


@pytest.mark.parametrize("options", [{"use_separable_cma": True}, {"with_margin": True}], ids=str)
def test_cma_es_goes_on_where_another_client_stopped(server, options):
    # The sampler keeps its state in the trials' system attributes.
    pytest.importorskip("cmaes")
    for seed in range(3):
        study = optuna.create_study(storage=server.proxy(), study_name=f"cma {options}", load_if_exists=True,
                                    sampler=CmaEsSampler(seed=seed, n_startup_trials=2, popsize=4, **options))
        study.optimize(lambda t: sum(t.suggest_float(f"x{i}", -1, 1) ** 2 for i in range(3)), n_trials=8)
    assert len(study.trials) == 24 and all(t.state == TrialState.COMPLETE for t in study.trials)
    generations = {v for t in study.trials for k, v in t.system_attrs.items() if k.endswith("generation")}
    assert len(generations) >= 4, generations
    same_elsewhere(server, study)


def test_partly_fixed_parameters(server):
    study = optuna.create_study(storage=server.proxy(), sampler=PartialFixedSampler({"y": 4}, TPESampler(seed=1, n_startup_trials=2)))
    study.optimize(objective, n_trials=6)
    assert {t.params["y"] for t in study.trials} == {4}
    same_elsewhere(server, study)


def test_stale_and_retried_trials(server):
    study = optuna.create_study(storage=server.proxy())
    left = study.ask()
    left.suggest_float("x", 0, 1)
    # This storage of Optuna's has no heartbeat, so nothing is failed by it.
    optuna.storages.fail_stale_trials(study)
    assert study.trials[0].state == TrialState.RUNNING
    study.tell(left.number, state=TrialState.FAIL)
    retry = optuna.storages.RetryFailedTrialCallback(max_retry=1)
    retry(study, study.trials[0])
    retry(study, study.trials[0])
    again = study.ask()
    assert again.suggest_float("x", 0, 1) == study.trials[0].params["x"]
    study.tell(again, 1.0)
    assert optuna.storages.RetryFailedTrialCallback.retried_trial_number(study.trials[1]) == 0
    assert optuna.storages.RetryFailedTrialCallback.retry_history(study.trials[1]) == [0]
    same_elsewhere(server, study)


def test_callbacks_and_fixed_distributions(server):
    study = optuna.create_study(storage=server.proxy())
    seen = []
    study.optimize(objective, n_trials=10, callbacks=[
        lambda study, trial: seen.append(trial.number), optuna.study.MaxTrialsCallback(4, states=(TrialState.COMPLETE,))])
    assert seen == [0, 1, 2, 3]
    trial = study.ask(fixed_distributions={"n": optuna.distributions.IntDistribution(1, 64, log=True)})
    study.tell(trial, trial.params["n"])
    assert study.trials[-1].value == study.trials[-1].params["n"]
    same_elsewhere(server, study)


@pytest.mark.parametrize("sampler", [NSGAIISampler(seed=1, population_size=4), NSGAIIISampler(seed=1, population_size=4), TPESampler(seed=1, n_startup_trials=4)],
                         ids=lambda s: type(s).__name__)
def test_several_objectives(server, sampler):
    study = optuna.create_study(storage=server.proxy(), directions=["minimize", "maximize"], sampler=sampler)
    study.set_metric_names(["loss", "gain"])
    study.optimize(lambda t: (t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)), n_trials=12)
    assert len(study.best_trials) >= 1 and study.metric_names == ["loss", "gain"]
    same_elsewhere(server, study)


@pytest.mark.parametrize("pruner", [
    MedianPruner(n_startup_trials=2), PercentilePruner(25.0, n_startup_trials=2), SuccessiveHalvingPruner(), HyperbandPruner(max_resource=8),
    PatientPruner(MedianPruner(n_startup_trials=1), patience=1), ThresholdPruner(upper=3.0), WilcoxonPruner(p_threshold=0.3, n_startup_steps=1),
], ids=lambda p: type(p).__name__)
def test_pruners(server, pruner):
    study = optuna.create_study(storage=server.proxy(), pruner=pruner, sampler=RandomSampler(seed=1))

    def pruned(trial):
        x = trial.suggest_float("x", 0, 5)
        for step in range(8):
            trial.report(x + (step if trial.number > 4 else 0), step)
            if trial.should_prune():
                raise TrialPruned()
        return x

    study.optimize(pruned, n_trials=15)
    assert any(t.state == TrialState.PRUNED for t in study.trials)
    assert all(t.intermediate_values for t in study.trials)
    same_elsewhere(server, study)


def test_enqueued_trials_come_first_and_once(server):
    study = optuna.create_study(storage=server.proxy())
    for i in range(4):
        study.enqueue_trial({"x": float(i)}, user_attrs={"queued": i})
    study.enqueue_trial({"x": 3.0}, skip_if_exists=True)
    study.optimize(objective, n_trials=6)
    assert [t.params["x"] for t in study.trials[:4]] == [0.0, 1.0, 2.0, 3.0]
    assert len(study.trials) == 6 and study.trials[2].user_attrs == {"queued": 2}


def test_stop_and_failures(server):
    study = optuna.create_study(storage=server.proxy())

    def stops(trial):
        if trial.number == 1:
            raise ValueError("no luck")
        if trial.number == 3:
            study.stop()
        return float("nan") if trial.number == 2 else 1.0

    study.optimize(stops, n_trials=10, catch=(ValueError,))
    assert [t.state for t in study.trials] == [TrialState.COMPLETE, TrialState.FAIL, TrialState.FAIL, TrialState.COMPLETE]


def test_numbers_that_are_none(server):
    study = optuna.create_study(storage=server.proxy())
    values = [math.inf, -math.inf, 1e308, 5e-324, -0.0]
    for v in values:
        trial = study.ask()
        trial.report(math.nan, 0)
        trial.report(v, 1)
        study.tell(trial, v)
    assert [t.value for t in study.trials] == values
    assert all(math.isnan(t.intermediate_values[0]) and t.intermediate_values[1] == t.value for t in study.trials)
    assert study.best_value == -math.inf


def test_attributes(server):
    study = optuna.create_study(storage=server.proxy())
    attrs = {"nested": {"a": [1, {"b": None}], "ü": "\U0001f600"}, "nan": [math.nan, math.inf], "foldlog:x": 1, "big": 2**80, "": True}
    trial = study.ask()
    for key, value in attrs.items():
        study.set_user_attr(key, value)
        trial.set_user_attr(key, value)
    study.tell(trial, 1.0)
    for got in (study.user_attrs, study.trials[0].user_attrs):
        assert {k: repr(v) for k, v in got.items()} == {k: repr(v) for k, v in attrs.items()}


def test_choices_of_every_kind(server):
    study = optuna.create_study(storage=server.proxy(), sampler=RandomSampler(seed=1))
    # Optuna warns of lists and dicts as choices, but takes them.
    choices = [None, True, 7, 2**70, 0.5, math.inf, "text", "NaN", [1, [2]], {"k": "v"}]
    for i, choice in enumerate(choices):
        study.add_trial(optuna.create_trial(
            params={"c": choice}, distributions={"c": CategoricalDistribution(choices)}, value=float(i)))
    assert [t.params["c"] for t in study.trials] == choices
    study.optimize(lambda t: choices.index(t.suggest_categorical("c", choices)), n_trials=5)
    assert len(study.trials) == len(choices) + 5


def test_parallel_jobs(server):
    study = optuna.create_study(storage=server.proxy())
    study.optimize(objective, n_trials=24, n_jobs=4)
    assert sorted(t.number for t in study.trials) == list(range(24))
    same_elsewhere(server, study)


def test_load_copy_delete(server):
    storage = server.proxy()
    study = optuna.create_study(storage=storage, study_name="name")
    study.optimize(objective, n_trials=3)
    with pytest.raises(optuna.exceptions.DuplicatedStudyError):
        optuna.create_study(storage=storage, study_name="name")
    assert len(optuna.create_study(storage=storage, study_name="name", load_if_exists=True).trials) == 3
    optuna.copy_study(from_study_name="name", from_storage=storage, to_storage=storage, to_study_name="copy")
    optuna.delete_study(study_name="name", storage=storage)
    assert optuna.create_study(storage=storage, study_name="name").trials == []
    copy = optuna.load_study(study_name="copy", storage=storage)
    assert len(copy.trials) == 3
    assert np.isfinite(list(optuna.importance.get_param_importances(copy, evaluator=optuna.importance.PedAnovaImportanceEvaluator()).values())).all()
