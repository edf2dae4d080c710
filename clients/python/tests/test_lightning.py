"""The logger for Lightning, against a stand-in of the interface that Lightning
documents: Logger with its abstract members, rank_zero_only, rank_zero_experiment, and the
order in which a Trainer calls a logger. The library itself is not here."""

import abc
import argparse
import functools
import importlib
import os
import sys
import unittest
import weakref

from .test_callbacks import Module, Tensor


def interface():
    """lightning.pytorch as far as a logger sees it."""

    def rank_zero_only(fn):
        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            return fn(*args, **kwargs) if rank_zero_only.rank == 0 else None

        return wrapped

    rank_zero_only.rank = 0

    class DummyExperiment:
        def __getattr__(self, name):
            return lambda *args, **kwargs: None

    def rank_zero_experiment(fn):
        @functools.wraps(fn)
        def experiment(self):
            return DummyExperiment() if rank_zero_only.rank > 0 else fn(self)

        return experiment

    class Logger(abc.ABC):
        name = property(abc.abstractmethod(lambda self: None))
        version = property(abc.abstractmethod(lambda self: None))
        save_dir = property(lambda self: None)

        @abc.abstractmethod
        def log_metrics(self, metrics, step=None):
            pass

        @abc.abstractmethod
        def log_hyperparams(self, params, *args, **kwargs):
            pass

        def log_graph(self, model, input_array=None):
            pass

        def save(self):
            pass

        def finalize(self, status):
            self.save()

        def after_save_checkpoint(self, checkpoint_callback):
            pass

    return Logger, rank_zero_experiment, rank_zero_only


class Lightning(Module):
    def logger(self, package="lightning.pytorch", rank=0, **arguments):
        Logger, rank_zero_experiment, rank_zero_only = interface()
        rank_zero_only.rank = rank
        self.fake(package + ".loggers.logger", Logger=Logger, rank_zero_experiment=rank_zero_experiment)
        self.fake(package + ".utilities.rank_zero", rank_zero_only=rank_zero_only)
        sys.modules.pop("foldlog.lightning", None)
        self.addCleanup(sys.modules.pop, "foldlog.lightning", None)
        logger = importlib.import_module("foldlog.lightning").FoldlogLogger("r", to=self.to, **arguments)
        self.assertIsInstance(logger, Logger)
        return logger

    def fit(self, logger, keeper):
        """What Trainer.fit has a logger do."""
        logger.log_hyperparams({"lr": 0.1, "layers": (1, 2), "model": object})
        logger.log_graph(None)
        logger.save()
        for step in (49, 99):
            logger.log_metrics(metrics={"train_loss": Tensor(1 / step), "epoch": 0, "grads": Tensor([1, 2])}, step=step)
            logger.save()
        keeper.best_model_path = "/ckpt/epoch=0.ckpt"
        logger.after_save_checkpoint(weakref.ref(keeper))
        logger.after_save_checkpoint(keeper)
        logger.log_metrics({"val_loss": 0.5})
        logger.finalize("success")

    class Keeper:
        last_model_path = best_model_path = ""

    def test_a_fit_and_a_test_are_one_run(self):
        logger = self.logger(metadata={"device": "cpu", "knobs": {"seed": 7}}, description="words")
        self.assertFalse(os.path.exists(self.path), "opened before there is anything to write")
        self.fit(logger, self.Keeper())
        logger.log_hyperparams(argparse.Namespace(lr=0.2))
        logger.log_metrics({"test_loss": 0.25}, 100)
        logger.finalize("success")
        logger.experiment.done()
        events = self.events()
        self.assertEqual(events[0]["description"], "words")
        self.assertEqual(events[0]["metadata"], {"device": "cpu", "knobs": {"seed": 7, "lr": 0.1, "layers": [1, 2], "model": str(object)}})
        self.assertEqual([p[:3] for p in self.points()], [
            (49, "train_loss", 1 / 49), (49, "epoch", 0), (99, "train_loss", 1 / 99), (99, "epoch", 0), (99, "val_loss", 0.5),
            (100, "test_loss", 0.25),
        ])
        self.assertEqual(self.notes(), [(99, "checkpoint /ckpt/epoch=0.ckpt"), (99, "hyperparameters")])
        self.assertEqual(self.kinds()[-1], "done")

    def test_checkpoints_lie_in_the_folder_of_the_slug(self):
        logger = self.logger()
        # As ModelCheckpoint finds its folder.
        version = logger.version if isinstance(logger.version, str) else "version_%s" % logger.version
        self.assertEqual(os.path.join("root", str(logger.name), version, "checkpoints"), os.path.join("root", "r", "checkpoints"))

    def test_other_processes_write_nothing(self):
        logger = self.logger(rank=1)
        self.fit(logger, self.Keeper())
        logger.experiment.metric(1, "loss", 0.5)
        logger.experiment.done()
        self.assertFalse(os.path.exists(self.path))

    def test_ctrl_c_that_a_trainer_keeps_to_itself(self):
        logger = self.logger("pytorch_lightning")
        logger.log_metrics({"loss": 1.0}, 3)
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            logger.finalize("failed")
        logger.experiment.done()
        self.assertEqual(self.kinds(), ["open", "metric", "annotation"])

    def test_a_failure_is_told_by_the_end_of_the_program(self):
        logger = self.logger()
        logger.log_metrics({"loss": 1.0}, 3)
        try:
            raise ValueError("no data")
        except ValueError:
            logger.finalize("failed")
        logger.experiment.close()
        self.assertEqual(self.kinds(), ["open", "metric"])


class Missing(unittest.TestCase):
    def test_the_library_is_named(self):
        with self.assertRaisesRegex(ImportError, "neither lightning nor pytorch_lightning"):
            importlib.import_module("foldlog.lightning")


if __name__ == "__main__":
    unittest.main()
