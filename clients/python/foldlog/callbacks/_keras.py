"""The callback for Keras (keras, or tensorflow.keras).

Steps are batches. Every so many of them the batch's logs are written as
train/NAME; at the end of an epoch its logs are epoch/NAME, and those of the
validation val/NAME. Keras does not say where checkpoints go.
"""

import importlib

from . import numbers


def _base():
    for module in ("keras.callbacks", "tensorflow.keras.callbacks"):
        try:
            return importlib.import_module(module).Callback
        except ImportError:
            continue
    raise ImportError("neither keras nor tensorflow is installed")


def make(run, every=100):
    class FoldlogCallback(_base()):
        def __init__(self):
            super().__init__()
            self._batches = 0

        def on_train_batch_end(self, batch, logs=None):
            self._batches += 1
            if self._batches % every == 0:
                self._write("train", numbers(logs))

        def on_epoch_end(self, epoch, logs=None):
            values = numbers(logs)
            val = {name[len("val_") :]: v for name, v in values.items() if name.startswith("val_")}
            self._write("epoch", {name: v for name, v in values.items() if not name.startswith("val_")}, epoch)
            self._write("val", val, epoch)

        def _write(self, group, values, epoch=None):
            metadata = {"split": "val" if group == "val" else "train"}
            if epoch is not None:
                metadata = {"split": metadata["split"], "per": "epoch"}
            for name, value in values.items():
                run.metric(self._batches, group + "/" + name, value, metadata)

    return FoldlogCallback()
