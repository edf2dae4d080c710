"""The callback for the Trainer of Hugging Face transformers.

What the Trainer logs is named as its other integrations do: eval_loss is
eval/loss, everything else is under train/. Only the first process writes.
"""

import importlib
import os

from . import numbers


def make(run):
    base = importlib.import_module("transformers").TrainerCallback

    class FoldlogCallback(base):
        def on_train_begin(self, args, state, control, **kwargs):
            if state.is_world_process_zero and state.global_step > 0:
                run.resumed(state.global_step, _checkpoint(args, state))

        def on_log(self, args, state, control, logs=None, **kwargs):
            if not state.is_world_process_zero:
                return
            for name, value in numbers(logs).items():
                name, split = _rename(name)
                run.metric(state.global_step, name, value, {"split": split})

        def on_save(self, args, state, control, **kwargs):
            if state.is_world_process_zero:
                run.checkpoint(state.global_step, _checkpoint(args, state))

    return FoldlogCallback()


def _checkpoint(args, state):
    return os.path.join(args.output_dir, "checkpoint-%d" % state.global_step)


def _rename(name):
    for split in ("eval", "test"):
        if name.startswith(split + "_"):
            return split + "/" + name[len(split) + 1 :], split
    return "train/" + name, "train"
