"""Compares foldlog study serve-optuna with Optuna's own gRPC server.

Both servers get the same work from the same clients, in turn, and the ratio is
printed. Optuna's server keeps its journal file as its manual says.

  trials  CLIENTS processes run TRIALS trials with 5 parameters and 5 reports each
  list    the real client fetches all of LIST trials into an empty cache

Beside the time stand the seconds of processor that the server and the clients
took: on a machine with other work to do they say more than the time.

It needs Optuna 4.2 or later with its gRPC stubs, numpy, and a built foldlog.
"""

import argparse
import datetime
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import optuna
from optuna.storages import GrpcStorageProxy
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

optuna.logging.set_verbosity(optuna.logging.ERROR)

# A fork of a process that has used gRPC cannot use it.
spawn = multiprocessing.get_context("spawn")


class Took(NamedTuple):
    seconds: float
    server: float  # of processor
    clients: float  # of processor, all together


class Foldlog:
    name = "foldlog"

    def __init__(self, path, binary):
        command = [binary, "study", "serve-optuna", path, "--addr", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(10) == 0


TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid):
    """The seconds of processor that a process has taken."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def own_server(path, port):
    storage = JournalStorage(JournalFileBackend(path))
    optuna.storages.run_grpc_proxy_server(storage, host="localhost", port=port)


class Own:
    name = "optuna"

    def __init__(self, path, _binary):
        import socket

        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = spawn.Process(target=own_server, args=(path, self.port))
        self.process.start()

    def stop(self):
        self.process.terminate()
        self.process.join()


def proxy(port):
    storage = GrpcStorageProxy(host="127.0.0.1", port=port)
    storage.wait_server_ready(timeout=60)
    return storage


def objective(trial):
    total = sum(trial.suggest_float(f"x{i}", -1, 1) ** 2 for i in range(5))
    for step in range(5):
        trial.report(total + 1 / (step + 1), step)
    return total


def client(port, trials, ready, go, spent):
    storage, sampler = proxy(port), optuna.samplers.RandomSampler()
    # The first trial of a process is for what Python imports on the way.
    warm = optuna.create_study(storage=storage, sampler=sampler)
    warm.optimize(objective, n_trials=1)
    study = optuna.load_study(study_name="bench", storage=storage, sampler=sampler)
    ready.release()
    go.wait()
    began = time.process_time()
    study.optimize(objective, n_trials=trials)
    spent.put(time.process_time() - began)


def bench_trials(kind, binary, trials, clients):
    with tempfile.TemporaryDirectory() as folder:
        server = kind(os.path.join(folder, "s"), binary)
        try:
            study = optuna.create_study(study_name="bench", storage=proxy(server.port))
            ready, go, spent = spawn.Semaphore(0), spawn.Event(), spawn.Queue()
            work = [trials // clients + (i < trials % clients) for i in range(clients)]
            workers = [spawn.Process(target=client, args=(server.port, n, ready, go, spent)) for n in work]
            for w in workers:
                w.start()
            for _ in workers:
                ready.acquire()
            begin, before = time.perf_counter(), cpu(server.process.pid)
            go.set()
            clients_cpu = sum(spent.get() for _ in workers)
            took = Took(time.perf_counter() - begin, cpu(server.process.pid) - before, clients_cpu)
            for w in workers:
                w.join()
                assert w.exitcode == 0
            done = study.get_trials(deepcopy=False)
            assert len(done) == trials and all(t.state.is_finished() and len(t.params) == 5 for t in done)
            assert all(len(t.intermediate_values) == 5 for t in done)
            return took
        finally:
            server.stop()


def write_log(path, trials):
    """Writes a journal file of Optuna's with that many finished trials."""
    rng = random.Random(1)
    dist = json.dumps({"name": "FloatDistribution", "attributes": {"step": None, "low": -1.0, "high": 1.0, "log": False}})
    now = datetime.datetime.now(tz=datetime.timezone.utc)
    with open(path, "w") as f:
        f.write(json.dumps({"op_code": 0, "worker_id": "w", "study_name": "bench", "directions": [1]}) + "\n")
        for i in range(trials):
            at = now + datetime.timedelta(milliseconds=i)
            f.write(json.dumps({
                "op_code": 4, "worker_id": "w", "study_id": 0, "state": 1, "value": rng.random(), "values": None,
                "datetime_start": at.isoformat(timespec="microseconds"),
                "datetime_complete": (at + datetime.timedelta(seconds=1)).isoformat(timespec="microseconds"),
                "distributions": {f"x{k}": dist for k in range(5)}, "params": {f"x{k}": rng.uniform(-1, 1) for k in range(5)},
                "user_attrs": {}, "system_attrs": {}, "intermediate_values": {str(k): rng.random() for k in range(5)},
            }) + "\n")


def bench_list(kind, binary, trials):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.log")
        write_log(path, trials)
        if kind is Foldlog:
            subprocess.run([binary, "study", "import", path, path + ".atj"], check=True, stderr=subprocess.DEVNULL)
            path += ".atj"
        server = kind(path, binary)
        try:
            storage = proxy(server.port)
            id = storage.get_study_id_from_name("bench")
            begin, before, own = time.perf_counter(), cpu(server.process.pid), time.process_time()
            assert len(storage.get_all_trials(id, deepcopy=False)) == trials
            own = time.process_time() - own
            return Took(time.perf_counter() - begin, cpu(server.process.pid) - before, own)
        finally:
            server.stop()


def compare(what, run, rounds):
    best = {}
    for _ in range(rounds):
        for kind in (Own, Foldlog):
            took = run(kind)
            best[kind] = min(took, best.get(kind, took))
            print(f"{what:7} {kind.name:8} {took.seconds:8.2f} s, processor: server {took.server:6.2f} s, clients {took.clients:6.2f} s", flush=True)
    own, ours = best[Own], best[Foldlog]
    print(f"{what:7} {'ratio':8} {own.seconds / ours.seconds:8.2f} (Optuna's best time over Foldlog's); "
          f"processor {(own.server + own.clients) / (ours.server + ours.clients):.2f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foldlog", default="./foldlog", help="the built command")
    p.add_argument("--trials", type=int, default=1000)
    p.add_argument("--clients", type=int, default=8)
    p.add_argument("--list", type=int, default=30000, help="how many trials to list; 0 leaves it out")
    p.add_argument("--rounds", type=int, default=1)
    a = p.parse_args()
    print(f"Optuna {optuna.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    if a.trials:
        compare("trials", lambda kind: bench_trials(kind, a.foldlog, a.trials, a.clients), a.rounds)
    if a.list:
        compare("list", lambda kind: bench_list(kind, a.foldlog, a.list), a.rounds)


if __name__ == "__main__":
    main()
