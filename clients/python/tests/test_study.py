"""Ask and tell, with real foldlog processes."""

import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import foldlog
from tests import foldlog_binary

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATIENCE = 300  # seconds until a test gives up waiting


def setUpModule():
    foldlog_binary.provide()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "search.atj")

    def study(self, *args, **kwargs):
        study = foldlog.create_study(self.path, *args, **kwargs)
        self.addCleanup(study.close)
        return study

    def open(self, **kwargs):
        study = foldlog.open_study(self.path, **kwargs)
        self.addCleanup(study.close)
        return study

    def worker(self, what):
        """A process of study_worker, and what it said first."""
        args = [sys.executable, "-m", "tests.study_worker", what, self.path]
        process = subprocess.Popen(args, cwd=FOLDER, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def eventually(self, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = what()
            if found:
                return found
            time.sleep(0.05)
        self.fail("nothing came of it")


class AtAServer(Case):
    """The same on a journal at a server, by its address."""

    def setUp(self):
        super().setUp()
        root = os.path.dirname(self.path)
        binary = os.environ.get("FOLDLOG_BINARY") or "foldlog"
        server = subprocess.Popen([binary, "--quiet", "serve", root, "--addr", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, env=dict(os.environ, XDG_CONFIG_HOME=root))
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.file, self.path = self.path, server.stdout.readline().decode().strip() + "/search.atj"

    def test_a_search_is_on_the_servers_disk(self):
        study = self.study(seed=3)
        study.optimize(objective, n_trials=6)
        with foldlog.open_study(self.file) as same:
            self.assertEqual([t.value for t in same.trials], [t.value for t in study.trials])
        self.assertEqual(len(self.open().trials), 6)
        with self.assertRaises(foldlog.NotFound):
            foldlog.open_study(self.path + "x")


def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    if trial.suggest_categorical("kind", ["far", "near"]) == "far":
        return x * x + trial.suggest_int("distance", 1, 9)
    return x * x


class Search(Case):
    def test_optimize_finds_what_is_good(self):
        study = self.study(seed=3)
        study.optimize(objective, n_trials=40)
        self.assertEqual(len(study.trials), 40)
        self.assertLess(study.best_value, 0.1)
        self.assertEqual(study.best_params["kind"], "near")
        self.assertEqual(study.best_trial.value, min(t.value for t in study.trials))

    def test_the_seed_decides_also_after_a_reopening(self):
        whole = self.study("whole", seed=7)
        whole.optimize(objective, n_trials=24)
        for part in range(4):
            with foldlog.create_study(self.path, "parts", seed=7, exist_ok=True) as study:
                study.optimize(objective, n_trials=6)
        self.assertEqual([t.params for t in whole.trials], [t.params for t in self.open(name="parts").trials])

    def test_several_objectives(self):
        study = self.study(directions=["minimize", "maximize"], metrics=["loss", "speed"], sampler="nsga2:population=4", seed=1)
        study.optimize(lambda t: (t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)), n_trials=10)
        front = study.best_trials
        self.assertTrue(front and all(len(t.values) == 2 for t in front))
        for a in front:
            self.assertFalse(any(b.values[0] < a.values[0] and b.values[1] > a.values[1] for b in study.trials))
        with self.assertRaises(foldlog.InvalidRequest):
            study.best_trial

    def test_a_declared_space_gives_all_parameters_at_once(self):
        study = self.study(space={"lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": True}, "opt": {"type": "categorical", "choices": ["a", "b"]}})
        trial = study.ask()
        self.assertEqual(sorted(trial.params), ["lr", "opt"])
        self.assertEqual(trial.suggest_float("lr", 1e-5, 0.1, log=True), trial.params["lr"])
        with self.assertRaisesRegex(foldlog.InvalidRequest, "another distribution"):
            trial.suggest_float("lr", 1e-5, 0.2)
        trial.suggest_int("more", 1, 3)
        self.assertEqual(set(study.tell(trial, 1).params), {"lr", "opt", "more"})

    def test_suggestions_are_of_their_kind(self):
        study = self.study(seed=1)
        for _ in range(15):
            t = study.ask()
            step = t.suggest_float("step", 0, 1, step=0.1)
            self.assertIn(step, [k / 10 for k in range(11)])
            self.assertIn(t.suggest_int("by two", 2**53 + 1, 2**53 + 5, step=2), [2**53 + 1, 2**53 + 3, 2**53 + 5])
            self.assertTrue(1 <= t.suggest_int("log", 1, 2**63 - 1, log=True) < 2**63)
            self.assertIs(type(t.suggest_float("one", 3, 3)), float)
            self.assertIn(t.suggest_categorical("c", [None, 1, 1.5, "x", True, [1, 2]]), [None, 1, 1.5, "x", True, [1, 2]])
            self.assertIs(type(t.suggest_bool("b")), bool)
            self.assertEqual(t.suggest_float("step", 0, 1, step=0.1), step)
            self.assertEqual(study.tell(t, 1.0).params, t.params)

    def test_enqueued_parameters_come_first(self):
        study = self.study()
        numbers = [study.enqueue({"x": 1.5, "kind": "far"}, key="k"), study.enqueue({"kind": "near"}), study.enqueue({}, key="k")]
        self.assertEqual(numbers, [0, 1, 0])
        study.optimize(objective, n_trials=3)
        trials = study.trials
        self.assertEqual((trials[0].params["x"], trials[0].params["kind"], trials[1].params["kind"]), (1.5, "far", "near"))

    def test_pruning(self):
        study = self.study(pruner="threshold:upper=10")

        def steps(trial):
            for step in range(5):
                trial.report(4.0 * step, step)
                if trial.should_prune():
                    raise foldlog.TrialPruned
            return 1.0

        study.optimize(steps, n_trials=1)
        trial = study.trials[0]
        self.assertEqual((trial.state, trial.reports), ("pruned", [(0, [0.0]), (1, [4.0]), (2, [8.0]), (3, [12.0])]))

    def test_attributes(self):
        study = self.study()
        study.set_user_attr("data", {"rows": [1, 2]})
        trial = study.ask()
        trial.set_user_attr("note", None)
        study.tell(trial, math.nan)
        self.assertEqual((study.user_attrs, study.trial(0).user_attrs), ({"data": {"rows": [1, 2]}}, {"note": None}))
        self.assertTrue(math.isnan(study.trial(0).value))

    def test_what_numpy_and_paths_have_is_written_as_json(self):
        class Array:
            def tolist(self):
                return [1, 0.5]

        study = self.study()
        study.set_user_attr("a", {"array": Array(), "path": pathlib.PurePath("a")})
        self.assertEqual(study.user_attrs, {"a": {"array": [1, 0.5], "path": "a"}})
        study.optimize(lambda trial: trial.suggest_int("n", 1.0, 3), n_trials=1)
        self.assertIs(type(study.best_params["n"]), int)

    def test_stop_timeout_and_callbacks(self):
        study = self.study()
        seen = []

        def after(study, trial):
            seen.append(trial.number)
            if len(seen) == 3:
                study.stop()

        study.optimize(objective, n_trials=10, callbacks=[after])
        self.assertEqual(seen, [0, 1, 2])
        study.optimize(objective, timeout=0)
        study.optimize(objective, budget=5)
        self.assertEqual(len(study.trials), 5)


class Failures(Case):
    def test_an_objective_that_raises_has_failed(self):
        study = self.study(retries=1)
        study.enqueue({"x": 0.0})
        with self.assertRaises(ZeroDivisionError):
            study.optimize(lambda t: 1 / t.suggest_float("x", 0, 1), n_trials=3)
        first, again = study.trials
        self.assertEqual((first.state, first.error), ("failed", "ZeroDivisionError: float division by zero"))
        self.assertEqual((again.state, again.attempt, again.retry_of), ("waiting", 2, 0))
        study.optimize(lambda t: 1 / t.suggest_float("x", 0, 1), n_trials=2, catch=(ZeroDivisionError,))
        self.assertEqual([t.state for t in study.trials], ["failed", "failed", "complete"])
        self.assertEqual(study.trials[1].params, {"x": 0.0})

    def test_errors_say_what_to_do(self):
        with self.assertRaises(foldlog.NotFound) as caught:
            foldlog.open_study(self.path)
        self.assertIn("create_study", caught.exception.hint)
        study = self.study()
        with self.assertRaises(foldlog.AlreadyExists) as caught:
            foldlog.create_study(self.path)
        self.assertIn("exist_ok", caught.exception.hint)
        trial = study.ask()
        for wrong in (
            lambda: trial.suggest_float("x", 2, 1), lambda: trial.suggest_int("x", 0, 9, log=True), lambda: trial.suggest_categorical("x", []),
            lambda: trial.suggest_categorical("x", [object()]), lambda: trial.suggest_float("x", 0, math.inf), lambda: trial.report("much", 1),
            lambda: trial.report("12", 1), lambda: study.tell(trial, b"1"), lambda: study.tell(trial, {0.5: 1}), lambda: study.tell(trial, 10**400),
            lambda: trial.report(1, 1.5), lambda: trial.suggest_int("x", 1, 2.5), lambda: trial.suggest_float("x", "a", 2),
            lambda: study.tell(trial, [1, 2]), lambda: study.tell(trial, state="done"), lambda: trial.set_user_attr("", 1),
            lambda: foldlog.create_study(self.path, "b", sampler="nobody"), lambda: foldlog.create_study(self.path, "b", direction="up"),
            lambda: foldlog.open_study("http:///s"), lambda: study.enqueue({"x": math.nan}),
        ):
            with self.assertRaises(foldlog.InvalidRequest):
                wrong()
        with self.assertRaises(foldlog.NotFound):
            study.trial(7)
        with self.assertRaises(foldlog.NotFound):
            study.best_trial
        with self.assertRaises(foldlog.BudgetSpent):
            study.ask(budget=1)
        study.tell(trial, 1)
        with self.assertRaisesRegex(foldlog.InvalidRequest, "has been told"):
            study.tell(trial, 1)
        with self.assertRaises(foldlog.NotFound):
            foldlog.open_study(self.path, binary="no-such-command")

    @unittest.skipUnless(hasattr(signal, "SIGSTOP"), "the platform cannot stop a process")
    def test_a_search_goes_on_when_others_have_taken_a_trial(self):
        study = self.study(lease=2, retries=3)
        session, other = study._session._process.pid, self.open(lease=2, retries=3)

        def objective(trial):
            if trial.number < 2:
                os.kill(session, signal.SIGSTOP)
                self.eventually(lambda: other.trial(trial.number).state == "failed")
                os.kill(session, signal.SIGCONT)
                if trial.number == 1:
                    trial.report(0.5, 0)
            return 0.25

        ended = []
        with self.assertLogs("foldlog") as logs:
            study.optimize(objective, n_trials=3, callbacks=[lambda _, trial: ended.append(trial.state)])
        self.assertEqual(ended, ["failed", "failed", "complete"])
        self.assertEqual(len(logs.output), 2)
        self.assertIn("not recorded: 0.25", logs.output[0])
        self.assertIn("trial 1", logs.output[1])
        with self.assertRaises(KeyError):
            study.optimize(lambda trial: {}[1], n_trials=1)

    def test_catch_may_be_one_class(self):
        study = self.study()
        study.optimize(lambda trial: 1 / 0, n_trials=2, catch=ArithmeticError)
        self.assertEqual([t.state for t in study.trials], ["failed", "failed"])

    def test_a_closed_study_fails_what_was_not_told(self):
        with self.study() as study:
            study.ask()
        with self.assertRaises(foldlog.SessionEnded):
            study.ask()
        self.assertEqual(self.open().trials[0].error, "the session ended before the result was told")

    def test_a_session_that_was_killed_is_noticed(self):
        study = self.study()
        os.kill(study._session._process.pid, signal.SIGKILL)
        with self.assertRaises(foldlog.SessionEnded):
            study.ask()
        self.open().optimize(objective, n_trials=1)


class Processes(Case):
    def test_a_budget_is_met_by_several(self):
        workers = [self.worker("budget") for _ in range(3)]
        self.assertEqual([w.wait(PATIENCE) for w in workers], [0, 0, 0])
        trials = self.open().trials
        self.assertEqual([t.number for t in trials], list(range(24)))
        self.assertEqual({t.state for t in trials}, {"complete"})

    def test_a_session_that_was_killed_in_an_objective_is_noticed(self):
        study = self.study()

        def objective(trial):
            os.kill(study._session._process.pid, signal.SIGKILL)
            trial.report(1, 0)

        for _ in range(2):
            with self.assertRaises(foldlog.SessionEnded):
                study.optimize(objective, n_trials=1)
            with self.assertRaises(foldlog.SessionEnded):
                study.set_user_attr("a", 1)
        study.close()

    def test_a_killed_program_fails_its_trial(self):
        worker = self.worker("hang")
        number, x, _ = worker.stdout.readline().split()
        worker.kill()
        study = self.open()
        self.eventually(lambda: study.trial(int(number)).state == "failed")
        again = study.ask()
        self.assertEqual((again.attempt, again.suggest_float("x", -5, 5)), (2, float(x)))
        study.tell(again, 1)

    def test_others_fail_what_went_silent(self):
        worker = self.worker("hang")
        number, x, session = map(float, worker.stdout.readline().split())
        os.kill(int(session), signal.SIGKILL)  # as a machine that went away
        worker.kill()
        study = self.open(lease=1, retries=1)
        self.eventually(lambda: study.get_trials("waiting"))
        first, again = study.trials
        self.assertRegex(first.error, "^stale: ")
        self.assertEqual((again.attempt, again.retry_of), (2, int(number)))
        self.assertEqual(study.ask().suggest_float("x", -5, 5), x)

    def test_a_result_that_comes_too_late_is_not_recorded(self):
        study = self.study(lease=0.5, retries=1)
        trial = study.ask()
        session = study._session._process.pid
        os.kill(session, signal.SIGSTOP)
        other = self.open(lease=0.5, retries=1)
        self.eventually(lambda: other.trial(0).state == "failed")
        os.kill(session, signal.SIGCONT)
        with self.assertRaisesRegex(foldlog.TrialLost, "not recorded: 0.25"):
            study.tell(trial, 0.25)
        with self.open(lease=3600) as patient:  # which nobody takes for dead while the machine is busy
            patient.tell(patient.ask(), 0.5)
        self.assertEqual(study.best_value, 0.5)

    @unittest.skipUnless(hasattr(os, "fork"), "the platform has no fork")
    def test_a_forked_child_does_not_keep_a_trial_alive(self):
        worker = self.worker("fork")
        number, child, _ = map(int, worker.stdout.readline().split())
        try:
            os.kill(child, 0)
            worker.kill()
            study = self.open()
            self.eventually(lambda: study.trial(number).state == "failed")
            os.kill(child, 0)
        finally:
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
