"""The callback for PyTorch Lightning (lightning.pytorch or pytorch_lightning).

What training steps log comes from trainer.logged_metrics every
trainer.log_every_n_steps; what is new after a validation is told apart by the
metadata "split". Checkpoints are those of trainer.checkpoint_callback. Of the
processes of a distributed training only the first writes; the others may have no run.
"""

import importlib

from . import numbers


def _base():
    for module in ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks"):
        try:
            return importlib.import_module(module).Callback
        except ImportError:
            continue
    raise ImportError("neither lightning nor pytorch_lightning is installed")


def _writes(trainer):
    return getattr(trainer, "is_global_zero", True)


def make(run, every=None):
    class FoldlogCallback(_base()):
        def __init__(self):
            super().__init__()
            self._train_names = set()
            self._last_step = None
            self._checkpoint = ""

        def on_train_start(self, trainer, pl_module):
            if _writes(trainer) and getattr(trainer, "ckpt_path", None):
                run.resumed(trainer.global_step, trainer.ckpt_path)

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if not _writes(trainer):
                return
            step = trainer.global_step
            self._note_checkpoint(trainer)
            if step == self._last_step or step % (every or trainer.log_every_n_steps or 1):
                return
            self._last_step = step
            values = numbers(trainer.logged_metrics)
            self._train_names |= set(values)
            run.metrics(step, values, {"split": "train"})

        def on_validation_end(self, trainer, pl_module):
            if trainer.sanity_checking or not _writes(trainer):
                return
            values = numbers(trainer.callback_metrics)
            seen = {name: v for name, v in values.items() if name not in self._train_names}
            run.metrics(trainer.global_step, seen, {"split": "validation"})

        def on_train_end(self, trainer, pl_module):
            if _writes(trainer):
                self._note_checkpoint(trainer)

        def on_exception(self, trainer, pl_module, exception):
            # Lightning ends fit quietly after Ctrl-C, so that nobody else can tell.
            if isinstance(exception, KeyboardInterrupt) and _writes(trainer):
                run.interrupted("SIGINT", trainer.global_step)

        def _note_checkpoint(self, trainer):
            keeper = getattr(trainer, "checkpoint_callback", None)
            path = getattr(keeper, "last_model_path", "") or getattr(keeper, "best_model_path", "")
            if path and path != self._checkpoint:
                self._checkpoint = path
                run.checkpoint(trainer.global_step, path)

    return FoldlogCallback()
