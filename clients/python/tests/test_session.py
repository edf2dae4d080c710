"""Sessions that are interrupted, stopped, shared, pickled and overrun."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import foldlog
from foldlog import _session

from . import test_datagen, test_study
from .test_study import setUpModule  # noqa: F401, for it is called

POSIX = unittest.skipUnless(os.name == "posix", "the platform has no such signals")


def later(log, do, *calls):
    """Makes the calls, one after the other, once a request has been written whose answer
    the main thread then waits for."""
    session, written = log._session, threading.Event()
    write = session._write

    def tell(stdin, line):
        write(stdin, line)
        if b'"do":"%s"' % do.encode() in line:
            written.set()

    def run():
        written.wait(test_study.PATIENCE)
        while session._half:
            time.sleep(0.001)
        for call in calls:
            time.sleep(0.3)
            call()

    session._write = tell
    thread = threading.Thread(target=run)
    thread.start()
    return thread


class Studies(test_study.Case):
    def pid(self, study):
        return study._session._process.pid

    @POSIX
    def test_a_session_goes_on_after_ctrl_c_and_no_trial_is_lost(self):
        study = self.study()
        os.kill(self.pid(study), signal.SIGSTOP)
        waiting = later(study, "ask", lambda: os.kill(os.getpid(), signal.SIGINT), lambda: os.kill(self.pid(study), signal.SIGCONT))
        with self.assertRaises(KeyboardInterrupt):
            study.ask()
        waiting.join()
        study.set_user_attr("after", 1)  # its answer follows that of the ask
        self.assertEqual([study.ask().number for _ in range(3)], [0, 1, 2])
        self.assertEqual((study.user_attrs, len(study.trials)), ({"after": 1}, 3))

    @POSIX
    def test_answers_belong_to_their_requests_whatever_was_interrupted(self):
        study = self.study()
        trial = study.ask()
        end = threading.Event()

        def disturb():
            while not end.wait(0.003):
                os.kill(os.getpid(), signal.SIGUSR1)

        class Disturbed(BaseException):
            pass

        package = os.path.join(os.path.dirname(foldlog.__file__), "")

        def handler(number, frame):
            if frame.f_code.co_filename.startswith(package):  # the tests themselves are not
                raise Disturbed

        before = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        disturber = threading.Thread(target=disturb)
        disturber.start()
        disturbed = 0
        try:
            for i in range(400):
                try:
                    trial.set_user_attr("n", i)
                    got = study.trial(0).user_attrs["n"]
                    self.assertEqual(got, i)
                except Disturbed:
                    disturbed += 1
                except foldlog.SessionEnded:  # a request was cut off in the middle
                    break
        finally:
            end.set()
            disturber.join()
        self.assertGreater(disturbed, 0)

    @POSIX
    def test_a_handler_of_a_signal_may_use_the_study_that_waits(self):
        study = self.study()
        trial = study.ask()
        told = []
        before = signal.signal(signal.SIGUSR1, lambda *_: told.append(study.tell(trial, 0.5).state))
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        os.kill(self.pid(study), signal.SIGSTOP)
        waiting = later(study, "set_attr", lambda: os.kill(os.getpid(), signal.SIGUSR1), lambda: os.kill(self.pid(study), signal.SIGCONT))
        study.set_user_attr("a", 1)
        waiting.join()
        self.assertEqual((told, study.user_attrs), (["complete"], {"a": 1}))

    @POSIX
    def test_sigterm_to_all_of_a_job_leaves_the_session_to_the_program(self):
        study = self.study()
        trial = study.ask()
        os.kill(self.pid(study), signal.SIGTERM)
        threading.Event().wait(0.3)
        trial.report(1, 0)
        self.assertEqual(study.tell(trial, 0.5).state, "complete")

    @POSIX
    def test_whether_a_cut_off_request_was_done_is_said_to_be_unknown(self):
        study = self.study()
        os.kill(self.pid(study), signal.SIGSTOP)
        waiting = later(study, "ask", lambda: os.kill(self.pid(study), signal.SIGKILL))
        with self.assertRaisesRegex(foldlog.SessionEnded, "status -9; whether it did 'ask' is not known"):
            study.ask()
        waiting.join()
        with self.assertRaisesRegex(foldlog.SessionEnded, "status -9$|status -9\\nhint: open it again$"):
            study.ask()

    def test_a_call_whose_session_another_thread_closes_meanwhile_says_so(self):
        study = self.study()
        session, write = study._session, study._session._write
        session._write = lambda stdin, line: (session.close(), write(stdin, line))
        with self.assertRaisesRegex(foldlog.SessionEnded, "the study was closed; whether it did 'ask' is not known"):
            study.ask()
        with self.assertRaisesRegex(foldlog.SessionEnded, "the study is closed"):
            study.ask()

    def test_the_end_of_a_session_does_not_wait_for_who_holds_its_pipe(self):
        study = self.study()
        with mock.patch.object(_session, "_PATIENCE", 0.1), mock.patch.object(study._session._answers, "thread") as thread:
            study.close()
        thread.join.assert_called_once_with(0.1)

    def test_a_study_is_pickled_as_where_it_is(self):
        study = self.study("s", retries=1)
        study.tell(study.ask(), 0.5)
        again = pickle.loads(pickle.dumps(study))
        self.addCleanup(again.close)
        self.assertEqual((again.best_value, again.name), (0.5, "s"))
        self.assertNotEqual(self.pid(again), self.pid(study))
        run = foldlog.open("r", to="jsonl:" + self.path + ".jsonl")
        self.addCleanup(run.close)
        for other in (study.ask(), run):
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(other)

    def test_what_is_too_large_is_refused_and_the_session_goes_on(self):
        study = self.study()
        with self.assertRaisesRegex(foldlog.InvalidRequest, "bytes as JSON"):
            study.set_user_attr("a", "x" * (17 << 20))
        study.set_user_attr("a", "x" * 1000)
        self.assertEqual(len(study.user_attrs["a"]), 1000)

    def test_an_answer_of_many_pieces(self):
        study = self.study()
        for i in range(3):
            study.set_user_attr("a%d" % i, "x" * 200_000)
        self.assertEqual({len(v) for v in study.user_attrs.values()}, {200_000})

    def test_a_study_that_is_gone_ends_its_process_and_its_thread(self):
        study = foldlog.create_study(self.path)
        thread, process = study._session._answers.thread, study._session._process
        self.addCleanup(process.wait)
        with self.assertWarns(ResourceWarning):
            del study
            process.stdin.close()
            thread.join(test_study.PATIENCE)
            self.assertFalse(thread.is_alive())
            process.__del__()


class Items(test_datagen.Case):
    def item(self, log, key, step="s"):
        with log.item(key) as item:
            item.step(step, {"n": 1})

    def test_a_thread_that_waits_for_an_item_of_another_process_holds_no_other_up(self):
        other, log = self.log(), self.log()
        other.item("held")
        got = []
        thread = threading.Thread(target=lambda: [got.append(item.key) or item.finish() for item in log.claim(["held"])])
        thread.start()
        for n in range(3):
            self.item(log, "free%d" % n)
        self.assertEqual(got, [])
        other.close()
        thread.join(test_study.PATIENCE)
        self.assertEqual(got, ["held"])

    def test_each_claim_has_its_own_list(self):
        log = self.log()
        a, b = log.claim(["a1", "a2"]), log.claim(["b1", "b2"])
        got = []
        for item in (next(a), next(b), next(a), next(b)):
            got.append(item.key)
            item.finish()
        self.assertEqual(sorted(got), ["a1", "a2", "b1", "b2"])
        self.assertEqual([list(a), list(b), list(log.claim(["a1"]))], [[], [], []])

    @POSIX
    def test_ctrl_c_in_a_claim_that_waits_loses_no_item(self):
        other, log = self.log(), self.log()
        other.item("held")
        waiting = later(log, "next", lambda: os.kill(os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            next(log.claim(["held"]))
        waiting.join()
        other.close()
        for item in log.claim(["held"]):
            with item:
                item.step("s", {"n": 1})
        self.assertTrue(log.item("held").ended)

    @POSIX
    def test_a_log_that_waits_for_others_can_be_closed(self):
        other, log = self.log(), self.log()
        other.item("held")
        waiting = later(log, "next", lambda: os.kill(os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            next(log.claim(["held"]))
        waiting.join()
        process = log._session._process
        with mock.patch.object(_session, "_PATIENCE", 20):
            log.close()
        self.assertEqual(process.returncode, 0)

    def test_a_log_is_pickled_as_where_it_is(self):
        log = self.log()
        self.item(log, "a")
        again = pickle.loads(pickle.dumps(log))
        self.addCleanup(again.close)
        self.assertTrue(again.item("a").ended)
        self.assertNotEqual(again.run, log.run)

    @unittest.skipUnless(hasattr(os, "fork"), "the platform has no fork")
    def test_a_forked_child_that_ends_leaves_the_files_of_its_parent(self):
        program = """if True:
            import foldlog, os, sys, warnings
            warnings.simplefilter("ignore")
            with foldlog.DatagenLog("p/e", root=sys.argv[1]) as log:
                for close in (True, False):
                    child = os.fork()
                    if child == 0:
                        if close:
                            log.close()
                        sys.exit()
                    os.waitpid(child, 0)
                with log.item("a") as item:
                    item.step("s", {"image": b"bytes"})
            print(os.path.exists(log._folder))
        """
        done = subprocess.run([sys.executable, "-c", program, self.root], cwd=test_datagen.FOLDER, stdout=subprocess.PIPE, timeout=test_study.PATIENCE)
        self.assertEqual((done.returncode, done.stdout.split()), (0, [b"False"]))
        self.assertTrue(self.log().item("a").ended)

    def test_what_makes_no_sense_is_an_error_of_the_log(self):
        log = self.log()
        item = log.item("a")
        for wrong in ({"x": [float("nan")]}, {"x": {"y": object()}}, {"x": object()}, {"x": {"\ud800": 1}}, {"x": b"", "y": object()}):
            with self.assertRaises(foldlog.InvalidStep) as caught:
                item.step("s", wrong)
            self.assertEqual(caught.exception.kind, "usage")
        with mock.patch.object(type(log._session), "most", 1000), self.assertRaisesRegex(foldlog.DatagenError, "bytes as JSON"):
            item.step("s", {"x": "x" * 2000})
        item.step("s", {"x": 1})


if __name__ == "__main__":
    unittest.main()
