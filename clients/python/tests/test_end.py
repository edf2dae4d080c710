"""How runs end: exceptions, signals, killed and forked processes, full disks."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import unittest

import foldlog

from .test_run import Case

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Ends(Case):
    def program(self, body, wait_for=None, send=None):
        """Runs a program, and sends it a signal once it has printed a word."""
        code = "import foldlog, os, signal, sys, time\nto = %r\n" % self.to + textwrap.dedent(body)
        env = dict(os.environ, PYTHONPATH=ROOT, PYTHONWARNINGS="ignore:This process")  # of a fork beside threads
        # Python says of every fork that there are threads; that is what some tests are about.
        args = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", code]
        process = subprocess.Popen(args, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if send is not None:
            self.assertEqual(process.stdout.readline().strip(), wait_for)
            process.send_signal(send)
        _, stderr = process.communicate(timeout=300)
        return process.returncode, stderr

    def annotations(self):
        return [e["annotation"] for e in self.events() if e["kind"] == "annotation"]

    def test_an_exception_is_a_failure_and_done(self):
        with self.assertRaises(ValueError):
            with foldlog.open("r", to=self.to) as run:
                run.metric(7, "v", 1)
                raise ValueError("loss is NaN")
        self.assertEqual(self.annotations(), ["failed: ValueError: loss is NaN"])
        self.assertEqual(self.kinds()[-1], "done")
        self.assertEqual(self.events()[-2]["step"], 7)

    def test_sigterm_is_an_interruption_without_done(self):
        status, _ = self.program(
            """
            with foldlog.open("r", to=to) as run:
                run.metric(3, "v", 1)
                try:
                    print("ready", flush=True)
                    time.sleep(60)
                except foldlog.Interrupted:
                    run.checkpoint(3, "/c/3", 0.1)
                    raise
            """,
            "ready",
            signal.SIGTERM,
        )
        self.assertEqual(status, 128 + 15)
        self.assertEqual(self.annotations(), ["interrupted by SIGTERM at step 3", "checkpoint /c/3"])
        self.assertNotIn("done", self.kinds())

    def test_ctrl_c_is_an_interruption_and_still_a_keyboard_interrupt(self):
        status, stderr = self.program(
            """
            with foldlog.open("r", to=to) as run:
                print("ready", flush=True)
                time.sleep(60)
            """,
            "ready",
            signal.SIGINT,
        )
        self.assertIn("KeyboardInterrupt", stderr)
        self.assertNotEqual(status, 0)
        self.assertEqual(self.annotations(), ["interrupted by SIGINT at step 0"])
        self.assertNotIn("done", self.kinds())

    def test_a_handler_of_the_program_is_kept(self):
        status, _ = self.program(
            """
            def mine(number, frame):
                sys.exit(9)
            signal.signal(signal.SIGTERM, mine)
            with foldlog.open("r", to=to) as run:
                print("ready", flush=True)
                time.sleep(60)
            """,
            "ready",
            signal.SIGTERM,
        )
        self.assertEqual(status, 9)
        self.assertEqual(self.annotations(), ["interrupted by SIGTERM at step 0"])

    def test_signals_while_metrics_are_written_lose_and_tear_nothing(self):
        status, _ = self.program(
            """
            with foldlog.open("r", to=to) as run:
                print("ready", flush=True)
                step = 0
                while True:
                    run.metric(step, "v", step)
                    step += 1
            """,
            "ready",
            signal.SIGTERM,
        )
        self.assertEqual(status, 128 + 15)
        steps = [e["step"] for e in self.events() if e["kind"] == "metric"]
        self.assertEqual(steps, list(range(len(steps))))
        self.assertEqual(len(self.annotations()), 1)

    def test_a_killed_process_leaves_whole_lines(self):
        self.program(
            """
            run = foldlog.open("r", to=to)
            for step in range(1000):
                run.metric(step, "v", step)
            run.checkpoint(999, "/c")
            path = to[len("jsonl:"):]
            while '"checkpoint":"/c"' not in open(path).read():
                time.sleep(0.01)
            print("ready", flush=True)
            time.sleep(60)
            """,
            "ready",
            signal.SIGKILL,
        )
        self.assertEqual(self.kinds(), ["open"] + ["metric"] * 1000 + ["annotation"])

    def test_the_end_of_the_program_is_done(self):
        status, _ = self.program("run = foldlog.open('r', to=to)\nrun.metric(0, 'v', 1)\n")
        self.assertEqual(status, 0)
        self.assertEqual(self.kinds(), ["open", "metric", "done"])

    def test_a_closed_run_stays_without_done(self):
        self.program("run = foldlog.open('r', to=to)\nrun.close()\n")
        self.assertEqual(self.kinds(), ["open"])

    def test_an_exception_that_ends_the_program_is_a_failure_and_done(self):
        status, stderr = self.program("run = foldlog.open('r', to=to)\nrun.metric(4, 'v', 1)\nraise ValueError('loss is NaN')\n")
        self.assertEqual(status, 1)
        self.assertIn("ValueError: loss is NaN", stderr)
        self.assertEqual(self.annotations(), ["failed: ValueError: loss is NaN"])
        self.assertEqual((self.events()[-2]["step"], self.kinds()[-1]), (4, "done"))

    def test_an_exception_that_was_caught_ends_nothing(self):
        self.program("run = foldlog.open('r', to=to)\ntry:\n    raise ValueError('no')\nexcept ValueError:\n    pass\n")
        self.assertEqual(self.kinds(), ["open", "done"])

    def test_a_status_of_sys_exit_is_a_failure_and_done(self):
        for status, want in ((3, ["failed: SystemExit: 3"]), ("no data", ["failed: SystemExit: no data"]), (0, []), (None, [])):
            with self.subTest(status=status):
                if os.path.exists(self.path):
                    os.unlink(self.path)
                got, _ = self.program("run = foldlog.open('r', to=to)\nsys.exit(%r)\n" % (status,))
                self.assertEqual(got, 1 if isinstance(status, str) else status or 0)
                self.assertEqual((self.annotations(), self.kinds()[-1]), (want, "done"))

    def test_sys_exit_in_a_thread_ends_nothing(self):
        self.program(
            """
            import threading
            run = foldlog.open("r", to=to)
            t = threading.Thread(target=sys.exit, args=(4,))
            t.start()
            t.join()
            """
        )
        self.assertEqual(self.kinds(), ["open", "done"])

    def test_signals_interrupt_a_run_without_with(self):
        for sent, want in ((signal.SIGTERM, 128 + 15), (signal.SIGINT, -signal.SIGINT)):
            with self.subTest(sent.name):
                status, _ = self.program(
                    """
                    run = foldlog.open("r", to=to)
                    other = foldlog.open("other", to=to + "." + sys.argv[0])
                    run.metric(3, "v", 1)
                    print("ready", flush=True)
                    time.sleep(60)
                    """,
                    "ready",
                    sent,
                )
                self.assertEqual(status, want)
                self.assertEqual(self.annotations()[-1], "interrupted by %s at step 3" % sent.name)
                self.assertNotIn("done", self.kinds())
                with open(self.path + ".-c") as f:
                    self.assertIn("interrupted by %s at step 0" % sent.name, f.read().splitlines()[-1])

    def test_the_signals_of_a_program_stay_its_own(self):
        status, _ = self.program(
            """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            run = foldlog.open("r", to=to)
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with foldlog.open("r", to=to, signals=False):
                assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
            with foldlog.open("r", to=to):
                assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
            third = foldlog.open("r", to=to)
            third.done()
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
            """
        )
        self.assertEqual(status, 0)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_dies_of_sigterm(self):
        status, stderr = self.program(
            """
            run = foldlog.open("r", to=to)
            r, w = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(w, b"!")
                    time.sleep(60)
                finally:
                    os._exit(3)
            os.read(r, 1)
            os.kill(child, signal.SIGTERM)
            _, status = os.waitpid(child, 0)
            assert os.WTERMSIG(status) == signal.SIGTERM, status
            """
        )
        self.assertEqual((status, stderr), (0, ""))
        self.assertEqual(self.kinds(), ["open", "done"])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_does_not_write(self):
        status, stderr = self.program(
            """
            run = foldlog.open("r", to=to)
            child = os.fork()
            if child == 0:
                try:
                    run.metric(0, "child", 1)
                except foldlog.Closed:
                    os._exit(5)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            run.metric(0, "parent", 1)
            run.done()
            sys.exit(os.WEXITSTATUS(status))
            """
        )
        self.assertEqual((status, stderr), (5, ""))
        self.assertEqual([e.get("name") for e in self.events()], [None, "parent", None])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_does_not_wait_for_the_locks_of_threads(self):
        status, stderr = self.program(
            """
            run = foldlog.open("r", to=to)
            run._lock.acquire()  # as a thread that writes at this moment
            import threading
            def fork():
                global status
                child = os.fork()
                if child == 0:
                    signal.alarm(20)
                    run.done()
                    run.close()
                    try:
                        run.metric(0, "child", 1)
                    except foldlog.Closed:
                        os._exit(5)
                    os._exit(0)
                status = os.waitpid(child, 0)[1]
            t = threading.Thread(target=fork)
            t.start()
            t.join()
            run._lock.release()
            run.done()
            sys.exit(os.WEXITSTATUS(status))
            """
        )
        self.assertEqual((status, stderr), (5, ""))
        self.assertEqual(self.kinds(), ["open", "done"])

    def test_a_run_of_a_process_of_multiprocessing_is_ended_as_that_ends(self):
        for method in multiprocessing.get_all_start_methods():
            for how, want in (("return", ["open", "metric", "done"]), ("raise", ["open", "metric", "annotation", "done"]),
                              ("exit", ["open", "metric", "annotation", "done"]), ("terminate", ["open", "metric", "annotation"])):
                with self.subTest(method=method, how=how):
                    if os.path.exists(self.path):
                        os.unlink(self.path)
                    run = subprocess.run([sys.executable, "-m", "tests.child", method, how, self.to], cwd=ROOT, stderr=subprocess.PIPE, timeout=300)
                    self.assertEqual((run.returncode, self.kinds()), (0, want), run.stderr)

    def test_after_the_end_is_an_error(self):
        run = foldlog.open("r", to=self.to)
        run.done()
        with self.assertRaises(foldlog.Closed):
            run.metric(0, "v", 1)
        self.assertIs(run.done(), run.report)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_full_disk_is_counted_and_said(self):
        with self.assertLogs("foldlog") as logs:
            run = foldlog.open("r", to="jsonl:/dev/full", close_timeout=2)
            for step in range(10):
                run.metric(step, "v", 1)
            report = run.done()
        self.assertEqual((report.targets[0].sent, report.lost), (0, 12))
        self.assertIn("No space left", str(report))
        self.assertIn("12 dropped", logs.output[0])

    def test_a_queue_that_is_full_drops_and_counts(self):
        r, w = os.pipe()
        self.addCleanup(os.close, r)
        from foldlog._targets import FileTarget, Line

        target = FileTarget("pipe", w, limit=256 << 10, patience=0.01)
        for _ in range(2000):
            target.put(Line(b"x" * 999 + b"\n"))
        import time

        report = target.close(time.monotonic())
        self.assertEqual(report.sent + report.dropped, 2000)
        self.assertGreater(report.dropped, 1000)
        self.assertIsNotNone(report.error)

    def test_stdout_with_a_closed_pipe_goes_on(self):
        code = (
            "import foldlog, sys\n"
            "run = foldlog.open('r', to=['stdout', %r])\n"
            "sys.stdin.read()\n"
            "for step in range(10): run.metric(step, 'v', 1)\n"
            "report = run.done()\n"
            "sys.stderr.write(str(report))\n" % self.to
        )
        process = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=ROOT),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        stderr = process.stderr.read()
        process.wait(timeout=300)
        process.stderr.close()
        self.assertIn("Broken pipe", stderr)
        self.assertEqual(self.kinds(), ["open"] + ["metric"] * 10 + ["done"])


if __name__ == "__main__":
    unittest.main()
