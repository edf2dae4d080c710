"""Runs and their lines: what is written, and what is refused."""

import io
import json
import math
import os
import pathlib
import re
import stat
import tempfile
import unittest
from unittest import mock

import foldlog


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "run.jsonl")
        self.to = "jsonl:" + self.path

    def lines(self):
        with open(self.path, "rb") as f:
            return f.read().decode("utf-8").splitlines()

    def events(self):
        return [json.loads(line) for line in self.lines()]

    def kinds(self):
        return [e["kind"] for e in self.events()]


class Lines(Case):
    def test_open_first_done_last(self):
        with foldlog.open("my-run", "words", {"knobs": {"lr": 0.1}}, to=self.to, clock=lambda: 1.5) as run:
            run.metric(4, "train/loss", 2.5, {"split": "train"})
            run.checkpoint(8, "/c/8", 0.041)
        self.assertEqual(
            self.lines(),
            [
                '{"ts_ms":1500,"kind":"open","slug":"my-run","description":"words","metadata":{"knobs":{"lr":0.1}}}',
                '{"ts_ms":1500,"step":4,"kind":"metric","name":"train/loss","value":2.5,"metadata":{"split":"train"}}',
                '{"ts_ms":1500,"step":8,"kind":"annotation","annotation":"checkpoint /c/8",'
                '"metadata":{"checkpoint":"/c/8","seconds":0.041}}',
                '{"ts_ms":1500,"kind":"done","slug":"my-run"}',
            ],
        )
        self.assertEqual((run.report.targets[0].sent, run.report.lost), (4, 0))

    def test_numbers(self):
        class Scalar:  # as of numpy or a tensor
            def __float__(self):
                return 0.1

        class Whole(Scalar):
            def __index__(self):
                return 7

        class Shown(float):  # as numpy's
            def __repr__(self):
                return "shown(%s)" % float.__repr__(self)

            def __abs__(self):
                return self

        run = foldlog.open("r", to=self.to, metadata={"lr": Shown(0.5), "on": True})
        for value in (4, 4.0, -0.0, 1e-5, 1e-6, 123456789012345678, 1e15, 1e16, 5e-324, 1.7976931348623157e308, 2**64 - 1, 2**70,
                      10**400, math.nan, math.inf, -math.inf, True, Scalar(), Whole(), Shown(0.25)):
            run.metric(0, "v", value)
        run.done()
        got = [line.split('"value":')[1].split(',"metadata"')[0] for line in self.lines()[1:-1]]
        self.assertEqual(got, ["4", "4.0", "-0.0", "0.00001", "1e-6", "123456789012345678", "1000000000000000.0", "1e16", "5e-324",
                               "1.7976931348623157e308", "18446744073709551615", "1.1805916207174113e21", '"Infinity"', '"NaN"',
                               '"Infinity"', '"-Infinity"', "1", "0.1", "7", "0.25"])
        self.assertEqual(self.events()[0]["metadata"], {"lr": 0.5, "on": True})

    def test_the_runtimes_metadata_wins(self):
        run = foldlog.open("r", to=self.to, runtime={"stage": "easy"})
        run.metric(0, "v", 1, {"stage": "mine", "split": "train"})
        run.set_metadata({"stage": "hard"})
        run.experiment.metric(1, "v", 1)
        run.done()
        self.assertEqual([e["metadata"] for e in self.events()[1:-1]], [{"stage": "easy", "split": "train"}, {"stage": "hard"}])

    def test_log_writes_a_metric_for_each_entry(self):
        with foldlog.open("r", to=self.to) as run:
            run.log({"train/loss": 0.5, "train/accuracy": 1}, step=3, metadata={"split": "train"})
            run.log({}, step=4)
            self.assertRaises(foldlog.MetricNameError, run.log, {"": 1}, step=5)
            self.assertRaises(TypeError, run.log, {"v": 1})  # without a step
        self.assertEqual(
            [(e["step"], e["name"], e["value"], e["metadata"]) for e in self.events()[1:-1]],
            [(3, "train/loss", 0.5, {"split": "train"}), (3, "train/accuracy", 1, {"split": "train"})],
        )

    def test_a_resume_closes_off_a_torn_line(self):
        with open(self.path, "w") as f:
            f.write('{"ts_ms":1,"kind":"open","slug":"r","description":"","metadata":{}}\n{"ts_ms":2,"st')
        foldlog.open("r", to=self.to).done()
        lines = self.lines()
        self.assertEqual(lines[1], '{"ts_ms":2,"st')
        self.assertEqual([json.loads(line)["kind"] for line in lines[2:]], ["open", "done"])

    def test_text_that_is_no_unicode_is_mended(self):
        run = foldlog.open("r", "half \ud83d and \ud83d\ude00", to=self.to)
        run.annotate(0, "x\udfff", {"k": "\ud800"})
        run.done()
        self.assertEqual(self.events()[0]["description"], "half \ufffd and \U0001f600")
        self.assertEqual(self.events()[1]["annotation"], "x\ufffd")

    def test_numbers_in_metadata(self):
        run = foldlog.open("r", to=self.to, metadata={"a": [1, 2.0, None, True, math.nan], "p": tempfile.gettempdir()})
        run.done()
        self.assertIn('"a":[1,2.0,null,true,"NaN"]', self.lines()[0])


class Files(Case):
    def test_a_path_is_a_file(self):
        foldlog.open("r", to=pathlib.Path(self.path)).done()
        self.assertEqual(self.kinds(), ["open", "done"])

    @unittest.skipUnless(os.name == "posix", "folders cannot be synced here")
    def test_the_end_makes_the_name_of_the_file_durable_too(self):
        synced = []
        with mock.patch("foldlog._targets.os.fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode))):
            foldlog.open("r", to=self.to).done()
        self.assertEqual((synced[:2], any(synced[2:])), ([False, True], False))

    def test_an_output_that_is_no_file_is_said(self):
        for output in (io.StringIO(), None):
            with mock.patch("sys.stdout", output), self.assertRaisesRegex(foldlog.TargetError, "stdout: open"):
                foldlog.open("r", to="stdout")

    def test_what_a_server_lacks_is_said_with_what_sends_it(self):
        with self.assertLogs("foldlog") as logs:
            run = foldlog.open("r", to=[self.to, "http://127.0.0.1:1"], close_timeout=0.1)
            run.done()
        self.assertRegex(logs.output[0], "2 left in the file: .*; foldlog metrics push %s --to http://127.0.0.1:1 sends them$" % re.escape(self.path))

    def test_what_a_broken_thread_leaves_is_counted(self):
        with mock.patch("foldlog._targets.FileTarget._write", side_effect=MemoryError), mock.patch("threading.excepthook"):
            run = foldlog.open("r", to=self.to)
            run._targets[0]._thread.join()
            run.metric(0, "v", 1)
            with self.assertLogs("foldlog"):
                report = run.done()
        self.assertEqual((report.targets[0].sent, report.lost), (0, 3))


class Limits(Case):
    def annotation(self, text):
        run = foldlog.open("r", to=self.to)
        run.annotate(0, text)
        run.done()
        return self.events()[1]["annotation"]

    def test_text_is_cut_on_a_character(self):
        self.assertEqual(self.annotation("a" * 15_999 + "\U0001f600"), "a" * 15_999)

    def test_text_at_the_limit_stays(self):
        text = "a" * 15_998 + "\U0001f600"
        self.assertEqual(self.annotation(text), text)

    def test_a_lowering_block_loses_graph_lines(self):
        run = foldlog.open("r", to=self.to)
        run.lowering(0, "head", ["graph %03d " % i + "x" * 90 for i in range(300)], ["tail"], "cuda")
        run.done()
        text = self.events()[1]["annotation"]
        self.assertLessEqual(len(text), 16_000)
        self.assertRegex(text, r"(?s)^lowering: head\ngraph 000 .*\n\.\.\. \d+ more lines\ntail$")

    def test_sources_become_a_sentence(self):
        sources = [{"path": "f%d" % i, "sha256": "0" * 64} for i in range(2000)]
        foldlog.open("r", to=self.to, metadata={"entry": "e", "sources": sources}).done()
        self.assertEqual(self.events()[0]["metadata"], {"entry": "e", "sources": "2000 files, too large to record"})

    def test_open_metadata_at_64_kib(self):
        size = (64 << 10) - len('{"a":""}')
        foldlog.open("r", to=self.to, metadata={"a": "x" * size}).done()
        with self.assertRaises(foldlog.LimitError):
            foldlog.open("r", to=self.to, metadata={"a": "x" * (size + 1)})

    def test_refused(self):
        run = foldlog.open("r", to=self.to)
        self.addCleanup(run.close)
        for error, call in (
            (foldlog.MetricNameError, lambda: run.metric(0, "", 1)),
            (foldlog.MetricNameError, lambda: run.metric(0, "n" * 1025, 1)),
            (foldlog.MetricNameError, lambda: run.metric(0, "\ud800", 1)),
            (foldlog.MetadataError, lambda: run.metric(0, "v", 1, {1: 2})),
            (foldlog.MetadataError, lambda: run.metric(0, "v", 1, {"k": object()})),
            (foldlog.LimitError, lambda: run.metric(0, "v", 1, {"k": "x" * (64 << 10)})),
            (foldlog.LimitError, lambda: run.annotate(0, "v", {"k": "x" * (256 << 10)})),
            (TypeError, lambda: run.metric(0, "v", "1.5")),
            (TypeError, lambda: run.metric(0.5, "v", 1)),
            (OverflowError, lambda: run.metric(1 << 63, "v", 1)),
            (foldlog.SlugError, lambda: foldlog.open("", to=self.to)),
            (foldlog.SlugError, lambda: foldlog.open("a/b", to=self.to)),
            (foldlog.SlugError, lambda: foldlog.open("..", to=self.to)),
            (foldlog.SlugError, lambda: foldlog.open("a\nb", to=self.to)),
            (foldlog.SlugError, lambda: foldlog.open("é" * 101, to=self.to)),
            (foldlog.TargetError, lambda: foldlog.open("r", to="ftp://x")),
            (TypeError, lambda: foldlog.open("r", to="stdout", config={})),
            (foldlog.TargetError, lambda: foldlog.open("r", to=[])),
            (foldlog.TargetError, lambda: foldlog.open("r", to=[1])),
            (foldlog.TargetError, lambda: foldlog.open("r", to="jsonl:/no/such/dir/x.jsonl")),
        ):
            with self.subTest(error=error), self.assertRaises(error):
                call()
        run.done()
        self.assertEqual(self.kinds(), ["open", "done"])

    def test_nesting_is_bounded(self):
        deep = {}
        for _ in range(200):
            deep = {"a": deep}
        with self.assertRaises(foldlog.MetadataError):
            foldlog.open("r", to=self.to, metadata=deep)


if __name__ == "__main__":
    unittest.main()
