"""Streams that are read back, held against what `foldlog metrics export` says of them."""

import csv
import json
import os
import subprocess
import unittest

import foldlog

from .test_run import Case
from .test_study import setUpModule  # noqa: F401, for it is called

# What a reader passes over, among what it takes.
LINES = """{"ts_ms":4,"kind":"open","slug":"r","description":"","metadata":{}}
{"ts_ms":5,"step":1,"kind":"metric","name":"resumed","value":1.0,"metadata":{"split":"train"}}
{"ts_ms":5,"kind":"metric","name":"no step","value":1,"metadata":{}}
{"ts_ms":6,"step":2,"kind":"metric","name":"no number","value":"one","metadata":{}}
{"ts_ms":6,"step":2,"kind":"metric","name":"bare","value":NaN,"metadata":{}}
no JSON at all
[1]
{"ts_ms":7,"step":3,"kind":"metric","name":"large","value":18446744073709551615,"metadata":{}}
{"ts_ms":7,"step":4,"kind":"metric","name":"torn","value":1"""


class Reading(Case):
    def setUp(self):
        super().setUp()
        with foldlog.open("r", to=self.to) as run:
            for step, value in enumerate((0.5, 4, float("nan"), float("inf"), float("-inf"), 1e-300)):
                run.metric(step, "é/loss", value, {"split": "train"})
            run.checkpoint(5, "/c")
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(LINES)

    def exported(self, path):
        command = [os.environ["FOLDLOG_BINARY"], "metrics", "export", path]
        out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode("utf-8")
        return list(csv.reader(out.splitlines()))[1:]

    def test_a_stream(self):
        points = list(foldlog.read_points(self.path))
        rows = self.exported(self.path)
        self.assertEqual(len(rows), 9)
        self.assertEqual([[p.run, str(p.segment), str(p.step), str(p.ts_ms), p.name] for p in points], [row[:5] for row in rows])
        self.assertEqual([repr(p.value) for p in points], [repr(type(p.value)(row[5])) for p, row in zip(points, rows)])
        self.assertEqual([p.metadata for p in points], [json.loads(row[6]) for row in rows])
        self.assertEqual([type(p.value) for p in points], [float, int, float, float, float, float, float, float, int])

    def test_a_directory(self):
        folder = os.path.dirname(self.path)
        for name in ("a", ".hidden", "z"):
            os.mkdir(os.path.join(folder, name))
            with foldlog.open(name.strip("."), to="jsonl:" + os.path.join(folder, name, "s.jsonl")) as run:
                run.metric(0, "v", 1)
        for name in ("other.jsonl", "words.txt"):
            with open(os.path.join(folder, name), "w") as f:
                f.write('{"step":1,"loss":0.5}\n')
        self.assertEqual([p.run for p in foldlog.read_points(folder)], ["a"] + ["r"] * 9 + ["z"])
        self.assertEqual([row[0] for row in self.exported(folder)], ["a"] + ["r"] * 9 + ["z"])

    def test_a_file_that_is_not_there(self):
        with self.assertRaises(FileNotFoundError):
            list(foldlog.read_points(self.path + "x"))


if __name__ == "__main__":
    unittest.main()
