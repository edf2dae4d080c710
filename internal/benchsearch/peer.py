"""Plays one Optuna study after another for benchsearch, which holds the
functions: each line of the input is an order, each gets a line of output."""
import json
import sys
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
SAMPLERS = {
    "random": optuna.samplers.RandomSampler,
    "qmc": optuna.samplers.QMCSampler,
    "tpe": optuna.samplers.TPESampler,
    "cmaes": optuna.samplers.CmaEsSampler,
    "nsga2": optuna.samplers.NSGAIISampler,
}
study = trial = None


def obey(order, *args):
    global study, trial
    if order == "study":
        sampler, seed, objectives = args
        study = optuna.create_study(sampler=SAMPLERS[sampler](seed=seed), directions=["minimize"] * objectives)
    elif order == "ask":
        trial = study.ask()
    elif order == "tell":
        study.tell(trial, args[0])
    elif order == "float":
        return trial.suggest_float(args[0], args[1], args[2], log=args[3], step=args[4])
    elif order == "int":
        return trial.suggest_int(args[0], args[1], args[2], log=args[3], step=args[4])
    elif order == "choice":
        return trial.suggest_categorical(args[0], list(range(args[1])))
    elif order == "version":
        return optuna.__version__


for line in sys.stdin:
    print(json.dumps(obey(*json.loads(line))), flush=True)
