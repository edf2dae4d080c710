"""The callbacks, against small stand-ins that call the hooks in the order of the
libraries. The libraries themselves are not here."""

import sys
import types
import unittest

import foldlog
from foldlog import callbacks

from .test_run import Case


class Module(Case):
    def fake(self, name, **members):
        """Puts a module in the place of a library."""
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            path = ".".join(parts[:i])
            saved = sys.modules.get(path)
            sys.modules[path] = types.ModuleType(path)
            self.addCleanup(lambda p=path, m=saved: sys.modules.pop(p) if m is None else sys.modules.__setitem__(p, m))
        for key, value in members.items():
            setattr(sys.modules[name], key, value)

    def points(self):
        return [(e["step"], e["name"], e["value"], e["metadata"]) for e in self.events() if e["kind"] == "metric"]

    def notes(self):
        return [(e["step"], e["annotation"].partition("\n")[0]) for e in self.events() if e["kind"] == "annotation"]


class Tensor:
    """A tensor as far as a callback sees it."""

    def __init__(self, value):
        self._value = value

    def item(self):
        if isinstance(self._value, list):
            raise ValueError("only one element tensors can be converted")
        return self._value


class Base:
    """A base class whose hooks do nothing, as those of the libraries."""

    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda *args, **kwargs: None
        raise AttributeError(name)


class Lazy(unittest.TestCase):
    def test_nothing_is_imported_until_a_callback_is_made(self):
        for name in ("lightning", "pytorch_lightning", "transformers", "keras", "tensorflow", "torch", "numpy"):
            self.assertNotIn(name, sys.modules)

    def test_a_missing_library_is_named(self):
        for make in (callbacks.lightning, callbacks.huggingface, callbacks.keras):
            with self.assertRaises(ImportError):
                make(None)


class Lightning(Module):
    def fit(self, callback, trainer):
        """The order of Trainer.fit: sanity check, training, validation, end."""
        trainer.sanity_checking = True
        callback.on_validation_end(trainer, None)
        trainer.sanity_checking = False
        callback.on_train_start(trainer, None)
        for batch in range(4):
            trainer.global_step += 1
            trainer.logged_metrics = {"loss": Tensor(1.0 / trainer.global_step), "grads": Tensor([1, 2])}
            trainer.callback_metrics = dict(trainer.logged_metrics)
            callback.on_train_batch_end(trainer, None, None, None, batch)
        trainer.callback_metrics["val_loss"] = Tensor(0.5)
        callback.on_validation_end(trainer, None)
        trainer.checkpoint_callback.best_model_path = "/ckpt/epoch=0.ckpt"
        callback.on_train_end(trainer, None)

    def trainer(self):
        return types.SimpleNamespace(global_step=100, log_every_n_steps=2, logged_metrics={}, callback_metrics={"val_loss": Tensor(9)},
                                     ckpt_path="/ckpt/old.ckpt", checkpoint_callback=types.SimpleNamespace(last_model_path="", best_model_path=""))

    def test_hooks(self):
        self.fake("lightning.pytorch.callbacks", Callback=Base)
        with foldlog.open("r", to=self.to) as run:
            self.fit(callbacks.lightning(run), self.trainer())
        self.assertEqual(self.points(), [
            (102, "loss", 1 / 102, {"split": "train"}),
            (104, "loss", 1 / 104, {"split": "train"}),
            (104, "val_loss", 0.5, {"split": "validation"}),
        ])
        self.assertEqual(self.notes(), [(100, "resumed from /ckpt/old.ckpt"), (104, "checkpoint /ckpt/epoch=0.ckpt")])

    def test_only_the_first_process_writes(self):
        self.fake("lightning.pytorch.callbacks", Callback=Base)
        trainer = self.trainer()
        trainer.is_global_zero = False
        callback = callbacks.lightning(None)
        self.fit(callback, trainer)
        callback.on_exception(trainer, None, KeyboardInterrupt())

    def test_ctrl_c_that_lightning_swallows(self):
        self.fake("pytorch_lightning.callbacks", Callback=Base)
        with foldlog.open("r", to=self.to) as run:
            callbacks.lightning(run).on_exception(self.trainer(), None, KeyboardInterrupt())
        self.assertEqual(self.kinds(), ["open", "annotation"])


class HuggingFace(Module):
    def test_hooks(self):
        self.fake("transformers", TrainerCallback=Base)
        args = types.SimpleNamespace(output_dir="out")
        state = types.SimpleNamespace(global_step=10, is_world_process_zero=True)
        with foldlog.open("r", to=self.to) as run:
            callback = callbacks.huggingface(run)
            callback.on_train_begin(args, state, None)
            state.global_step = 20
            callback.on_log(args, state, None, logs={"loss": 0.5, "learning_rate": 1e-4, "epoch": 1, "note": "text"}, model=None)
            callback.on_log(args, state, None, logs={"eval_loss": 0.25})
            callback.on_save(args, state, None)
            state.is_world_process_zero = False
            callback.on_log(args, state, None, logs={"loss": 9})
        self.assertEqual(self.points(), [
            (20, "train/loss", 0.5, {"split": "train"}),
            (20, "train/learning_rate", 0.0001, {"split": "train"}),
            (20, "train/epoch", 1, {"split": "train"}),
            (20, "eval/loss", 0.25, {"split": "eval"}),
        ])
        import os

        self.assertEqual(self.notes(), [
            (10, "resumed from " + os.path.join("out", "checkpoint-10")),
            (20, "checkpoint " + os.path.join("out", "checkpoint-20")),
        ])


class Keras(Module):
    def test_hooks(self):
        self.fake("keras.callbacks", Callback=Base)
        with foldlog.open("r", to=self.to) as run:
            callback = callbacks.keras(run, every=2)
            for epoch in range(2):
                for batch in range(3):
                    callback.on_train_batch_end(batch, {"loss": 1.0 - 0.1 * batch})
                callback.on_epoch_end(epoch, {"loss": 0.5, "val_loss": 0.75})
        self.assertEqual([p[:3] for p in self.points()], [
            (2, "train/loss", 0.9), (3, "epoch/loss", 0.5), (3, "val/loss", 0.75),
            (4, "train/loss", 1.0), (6, "train/loss", 0.8), (6, "epoch/loss", 0.5), (6, "val/loss", 0.75),
        ])


if __name__ == "__main__":
    unittest.main()
