"""Items of data generation, with real foldlog processes."""

import collections
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

import foldlog
from tests import foldlog_binary

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def setUpModule():
    foldlog_binary.provide()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        left = tempfile.TemporaryDirectory()  # for what programs leave that are killed
        self.addCleanup(left.cleanup)
        self.environ = dict(os.environ, TMPDIR=left.name)

    def log(self, **kwargs):
        log = foldlog.DatagenLog("p/e", root=self.root, **kwargs)
        self.addCleanup(log.close)
        return log

    def command(self, *args):
        binary = os.environ["FOLDLOG_BINARY"]
        return subprocess.run([binary, "datagen", *args, "--root", self.root], check=True, capture_output=True).stdout

    def shown(self, key):
        return json.loads(self.command("item", "p/e", key, "--json"))


class Steps(Case):
    def test_values_come_back_as_they_were(self):
        values = {"i": 2**62, "f": 0.1, "whole": 3.0, "t": True, "s": "é\n", "none": None, "l": [1, {"a": "b"}], "o": {"$blob": 1},
                  "inf": -math.inf, "b": b"\x00\xff", "empty": b""}
        with self.log() as log:
            with log.item("a", tags={"split": "train"}) as item:
                item.step("s", values)
                self.assertEqual(item["b"].read(), b"\x00\xff")
        item = self.log().item("a")
        self.assertTrue(item.ended)
        self.assertTrue(item.done("s"))
        item.step("s")
        for name, value in values.items():
            got = item[name]
            if isinstance(value, bytes):
                self.assertEqual((got.size, got.read()), (len(value), value))
            else:
                self.assertEqual((got, type(got)), (value, type(value)))
        self.assertEqual(self.shown("a")["tags"], {"split": "train"})

    def test_values_are_at_once_as_they_come_back(self):
        class Scalar:  # as of numpy, or a tensor
            def tolist(self):
                return 0.25

        given = {"tuple": (1, (2,)), "keys": {"b": 1, "a": {"d": 1, "c": 2}, 3: 4}, "half": "\ud800x", "scalar": Scalar(), "many": [Scalar()],
                 "large": [2**70, 2**53 + 1], "small": -0.0, "buffer": bytearray(b"b")}
        lists = {"list": [[1]]}

        def seen(item):
            return [(name, list(value) if isinstance(value, dict) else repr(value.read() if isinstance(value, foldlog.Blob) else value))
                    for name, value in sorted(item.fields.items())]

        def work():
            return {**given, **lists}

        with self.log() as log:
            first = log.item("a")
            first.step("s", work)
            lists["list"].append(2)  # what the program does with its objects afterwards changes no field
            first.step("t", append={"log": (1, 2)})
            before = seen(first)
            first.finish()
        again = self.log().item("a")
        again.step("s")
        again.step("t")
        self.assertEqual(before, seen(again))
        self.assertEqual((again["tuple"], list(again["keys"]), again["list"], again["log"]), ([1, [2]], ["3", "a", "b"], [[1]], [[1, 2]]))

    def test_an_item_that_is_filtered_in_a_sub_item_leaves_both_blocks(self):
        with self.log() as log:
            with log.item("a") as item:
                with item.sub("part", 0) as part:
                    item.filter()
                self.fail("it is filtered")
        self.assertEqual((item.status, part.ended), ("filtered", False))

    def test_an_ended_item_runs_nothing(self):
        log = self.log()
        for _ in range(2):
            with log.item("a") as item:
                item.step("s", {"x": 1})
            with log.item("b") as item:
                item.step("s", {"x": 1}, filter=True)
                self.fail("it is filtered")
        done = []
        with log.item("a") as item:
            item.step("s", lambda: done.append(1))
            item.step("another", lambda: done.append(2))
        self.assertEqual((done, item.status), ([], "completed"))
        self.assertEqual(list(log.claim(["a", "b"])), [])
        with log.item("a", rerun=True) as item:
            item.step("s", {"x": 2})
        self.assertEqual(self.shown("a")["creations"], 2)

    def test_an_exception_is_a_failure_and_the_item_goes_on_from_there(self):
        log = self.log()
        with self.assertRaises(ZeroDivisionError):
            with log.item("a") as item:
                item.step("one", {"x": 1})
                for _ in item.loop("l", most=1):
                    item.step("two", lambda: 1 / 0)
        shown = self.shown("a")
        self.assertEqual(shown["status"], "failed")
        failure = shown["failures"][0]
        self.assertEqual((failure["type"], failure["from"]["instance"]), ("ZeroDivisionError", "l#0/two"))
        self.assertIn("test_datagen.py", failure["traceback"])
        with log.item("a") as item:
            item.step("one", lambda: self.fail("it is done"))
            for _ in item.loop("l", most=1):
                item.step("two", {"y": 2})
        self.assertEqual([s["instance"] for s in self.shown("a")["steps"]], ["one", "l#0/two"])

    def test_interrupts_are_no_failures(self):
        log = self.log()
        with self.assertRaises(KeyboardInterrupt):
            with log.item("a") as item:
                item.step("one", {"x": 1})
                raise KeyboardInterrupt
        self.assertEqual((self.shown("a")["status"], self.shown("a")["failures"]), ("running", []))

    def test_another_program_is_told_from_the_one_that_began(self):
        log = self.log()
        with self.assertRaises(KeyboardInterrupt):
            with log.item("a") as item:
                item.step("one", {"x": 1})
                raise KeyboardInterrupt
        with self.assertRaisesRegex(foldlog.ItemChanged, "the log has step one where the program comes to zero"):
            with log.item("a") as item:
                item.step("zero")
        with self.assertRaisesRegex(foldlog.ItemChanged, "where the program ends"):
            with log.item("a") as item:
                pass
        self.assertEqual(self.shown("a")["failures"], [])

    def test_who_holds_an_item_is_told(self):
        first, second = self.log(), self.log()
        item = first.item("a")
        item.step("one", {"x": 1})
        with self.assertRaises(foldlog.ItemHeld):
            second.item("a")

    def test_misuse(self):
        log = self.log()
        with log.item("a") as item:
            with self.assertRaises(ValueError):
                item.step("a/b")
            with self.assertRaises(ValueError):
                item.step("s", {"x": 1}, append={"x": 2})
            with self.assertRaises((TypeError, ValueError)):
                item.step("s", {"x": object()})
            item.step("s")
        log.close()
        with self.assertRaises(foldlog.DatagenEnded):
            log.item("b")
        with self.assertRaises(foldlog.DatagenError):
            foldlog.DatagenLog("no/such/name", root=self.root)


class Killed(Case):
    """Programs that are killed in the middle, again and again."""

    def run_worker(self, die_after):
        done = subprocess.run([sys.executable, "-m", "tests.datagen_worker", self.root, "a,b,c", str(die_after)], cwd=FOLDER, env=self.environ, stdout=subprocess.PIPE)
        self.ran.update(done.stdout.decode().splitlines())
        return done.returncode

    def test_no_durable_step_runs_again(self):
        self.ran = collections.Counter()
        deaths = 0
        while self.run_worker(4) != 0:
            deaths += 1
            self.assertLess(deaths, 60)
        self.assertGreater(deaths, 4)
        # Each death takes the step that it said last along, which is done again.
        self.assertEqual(sum(n - 1 for n in self.ran.values()), deaths)
        kept = json.loads(self.command("status", "p/e", "--json"))
        self.assertEqual((kept["roots"], kept["states"]["completed"], kept["states"]["filtered"], kept["suspects"]), (3, 6, 1, 0))
        fields = {f["name"]: [v["value"] for v in f["values"]] for f in self.shown("a")["fields"]}
        self.assertEqual(fields["score"], [-1])
        self.assertEqual([s["instance"] for s in self.shown("a")["steps"]], ["draw", "refine#0/improve", "refine#1/improve", "reset"])


class Together(Case):
    def test_processes_share_the_items(self):
        keys = ",".join("k%d" % i for i in range(12))
        args = [sys.executable, "-m", "tests.datagen_worker", self.root, keys, "0"]
        workers = [subprocess.Popen(args, cwd=FOLDER, stdout=subprocess.PIPE) for _ in range(3)]
        lines = [line for w in workers for line in w.communicate()[0].decode().splitlines()]
        self.assertEqual([w.returncode for w in workers], [0, 0, 0])
        self.assertEqual(len(lines), len(set(lines)))
        self.assertEqual(len(lines), 12 * 6)


if __name__ == "__main__":
    unittest.main()
