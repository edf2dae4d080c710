"""A run of a process of multiprocessing that does not end it: python -m tests.child METHOD HOW TO."""

import multiprocessing
import os
import signal
import sys
import time

import foldlog


def work(how, to):
    run = foldlog.open("r", to=to)
    run.metric(0, "v", 1)
    if how == "raise":
        raise ValueError("loss is NaN")
    if how == "exit":
        sys.exit(3)
    if how == "terminate":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)


if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=sys.argv[2:])
    process.start()
    process.join()
