"""Runs Optuna on the problems of problems.go; prints a JSON line per study."""
import json
import math
import sys
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
MARKS = (100, 300)
REFERENCE = (1.1, 10.0)


def vector(t, n, low, high):
    return [t.suggest_float("x%02d" % i, low, high) for i in range(n)]


def branin(x, y):
    q = y - 5.1 / (4 * math.pi ** 2) * x * x + 5 / math.pi * x - 6
    return q * q + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def branin_trial(t):
    x = vector(t, 2, 0, 1)
    return branin(15 * x[0] - 5, 15 * x[1])


ALPHA = (1, 1.2, 3, 3.2)
A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
P = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991),
     (2348, 1451, 3522, 2883, 3047, 6650), (4047, 8828, 8732, 5743, 1091, 381))


def hartmann6(t):
    x = vector(t, 6, 0, 1)
    return -sum(ALPHA[i] * math.exp(-sum(A[i][j] * (x[j] - P[i][j] / 10000) ** 2 for j in range(6))) for i in range(4))


def rosenbrock(t):
    x = vector(t, 10, -5, 10)
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(9))


def rastrigin(t):
    x = vector(t, 10, -5.12, 5.12)
    z = [v + 1.3 if i % 2 else v - 1.3 for i, v in enumerate(x)]
    return 100 + sum(v * v - 10 * math.cos(2 * math.pi * v) for v in z)


def conditional(t):
    kind = t.suggest_categorical("kind", ["a", "b", "c"])
    if kind == "a":
        return (t.suggest_float("x", -5, 5) - 1) ** 2 + 0.3
    if kind == "b":
        y = math.log10(t.suggest_float("y", 1e-5, 1, log=True)) + 3
        return y * y + 0.1 * (t.suggest_int("z", 1, 10) - 4) ** 2 + 0.1
    return branin(15 * t.suggest_float("u", 0, 1) - 5, 15 * t.suggest_float("v", 0, 1)) - 0.397887


def zdt1(t):
    x = vector(t, 30, 0, 1)
    g = 1 + 9 * sum(x[1:]) / 29
    return x[0], g * (1 - math.sqrt(x[0] / g))


PROBLEMS = {
    "branin": (branin_trial, 0.397887), "hartmann6": (hartmann6, -3.32237), "rosenbrock10": (rosenbrock, 0.0),
    "rastrigin10": (rastrigin, 0.0), "conditional": (conditional, 0.0), "zdt1": (zdt1, None),
}
SAMPLERS = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "cmaes": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
    "nsga2": lambda seed: optuna.samplers.NSGAIISampler(seed=seed),
}


def hypervolume(values):
    area, height = 0.0, REFERENCE[1]
    for a, b in sorted(values):
        if a < REFERENCE[0] and b < height:
            area += (REFERENCE[0] - a) * (height - b)
            height = b
    return area


def score(values, optimum):
    if optimum is None:
        return REFERENCE[0] * REFERENCE[1] - hypervolume(values)
    return min(values)[0] - optimum


def run(problem, name, seed):
    f, optimum = PROBLEMS[problem]
    directions = ["minimize"] * (2 if optimum is None else 1)
    study = optuna.create_study(sampler=SAMPLERS[name](seed), directions=directions)
    study.optimize(f, n_trials=MARKS[-1])
    values = [tuple(t.values) for t in study.trials]
    scores = [score(values[:n], optimum) for n in MARKS]
    print(json.dumps({"problem": problem, "sampler": name, "seed": seed, "scores": scores}), flush=True)


for line in sys.stdin:
    run(*json.loads(line))
