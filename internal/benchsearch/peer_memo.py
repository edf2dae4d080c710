# With several objectives Optuna works out for every parameter of a trial which of
# the trials before it are good, always with the same result: remember the last.
# What it suggests does not change by that, only the time it takes.
from optuna.samplers._tpe import sampler as tpe


def remember(name):
    work, last = getattr(tpe, name), [None, None]

    def recall(*args):
        key = tuple(a.tolist() if hasattr(a, "tolist") else a for a in args)
        if last[0] != key:
            last[:] = key, work(*args)
        return last[1]

    setattr(tpe, name, recall)


for name in ("_split_observation_pairs", "_calculate_weights_below_for_multi_objective"):
    if hasattr(tpe, name):  # by other names in other versions
        remember(name)
