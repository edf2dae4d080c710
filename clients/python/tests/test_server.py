"""Studies and data generation at a server that asks for tokens, and what is said where
that does not work."""

import os
import subprocess
import tempfile
import time
import unittest
from unittest import mock

import foldlog
from foldlog._targets import FileTarget

from . import foldlog_binary


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        foldlog_binary.provide()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        binary, tokens = os.environ["FOLDLOG_BINARY"], os.path.join(cls.folder.name, "tokens.json")
        cls.root = os.path.join(cls.folder.name, "root")
        os.mkdir(cls.root)

        def token(name, *scopes):
            args = [binary, "--quiet", "serve", "token", "add", name, "--tokens", tokens]
            for scope in scopes:
                args += ["--scope", scope]
            return subprocess.run(args, check=True, stdout=subprocess.PIPE).stdout.decode().strip()

        cls.all, cls.read = token("all", "read", "write"), token("reader", "read")
        server = subprocess.Popen([binary, "--quiet", "serve", cls.root, "--addr", "127.0.0.1:0", "--tokens", tokens],
                                  stdout=subprocess.PIPE)
        cls.addClassCleanup(server.stdout.close)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.terminate)
        cls.address = server.stdout.readline().decode().strip()

    def setUp(self):
        self.use(self.all)

    def use(self, token):
        patch = mock.patch.dict(os.environ, {"FOLDLOG_TOKEN": token})
        patch.start()
        self.addCleanup(patch.stop)

    def says(self, error, message, hint, do):
        with self.assertRaises(error) as caught:
            do()
        self.assertRegex(str(caught.exception), message)
        self.assertRegex(caught.exception.hint, hint)

    def test_a_study_is_at_the_server(self):
        with foldlog.create_study(self.address + "/s.atj", direction="minimize") as study:
            study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
        self.assertTrue(os.path.exists(os.path.join(self.root, "s.atj")))
        self.use(self.read)
        with foldlog.open_study(self.address + "/s.atj") as study:
            self.assertEqual(len(study.trials), 2)
            self.says(foldlog.StudyError, "403: this token may not write", "FOLDLOG_TOKEN", study.ask)

    def test_a_log_of_data_generation_is_at_the_server(self):
        with foldlog.DatagenLog("digits/v1", root=self.address) as log:
            with log.item("a") as item:
                item.step("draw", lambda: {"n": 1, "image": b"bytes"})
                item.finish()
        with foldlog.DatagenLog(self.address + "/digits/v1") as log:
            with log.item("a") as item:
                item.step("draw", lambda: self.fail("the step is complete"))
                self.assertEqual((item.status, item["n"], item["image"].read()), ("completed", 1, b"bytes"))
        self.use(self.read)
        self.says(foldlog.DatagenError, "403: this token may not write", "FOLDLOG_TOKEN",
                  lambda: foldlog.DatagenLog("digits/v1", root=self.address))

    def test_a_run_that_names_the_server_before_its_slow_file_is_sent_to_the_end(self):
        write = FileTarget._write

        def slowly(target, lines):
            time.sleep(0.2)
            write(target, lines)

        with mock.patch.object(FileTarget, "_write", slowly):
            run = foldlog.open("slow", to=[self.address, "jsonl:" + os.path.join(self.folder.name, "run.jsonl")])
            run.metric(0, "v", 1)
            report = run.done()
        self.assertEqual([(t.target.partition(":")[0], t.sent) for t in report.targets], [("http", 3), ("jsonl", 3)])

    def test_a_wrong_token_is_an_error_with_advice(self):
        for token, message in (("wrong", "401: wrong token"), ("", "401: no token")):
            self.use(token)
            with self.subTest(token):
                self.says(foldlog.StudyError, message, "FOLDLOG_TOKEN", lambda: foldlog.open_study(self.address + "/s.atj"))
                self.says(foldlog.DatagenError, message, "FOLDLOG_TOKEN", lambda: foldlog.DatagenLog("digits/v1", root=self.address))

    def test_what_is_not_there_is_an_error_with_advice(self):
        self.says(foldlog.NotFound, "no journal", "create_study", lambda: foldlog.open_study(self.address + "/none.atj"))
        self.says(foldlog.StudyError, "ends in .atj", "^did you mean http://.*/none.atj", lambda: foldlog.create_study(self.address + "/none"))
        self.says(foldlog.DatagenError, "no datagen log", "PIPELINE/EXPERIMENT", lambda: foldlog.DatagenLog("a", root=self.address))

    def test_a_server_that_is_not_there_is_an_error_with_advice(self):
        self.says(foldlog.StudyError, "refused", "address", lambda: foldlog.open_study("http://127.0.0.1:1/s.atj"))


if __name__ == "__main__":
    unittest.main()
