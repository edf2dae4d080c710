"""The foldlog command that the tests of studies drive: FOLDLOG_BINARY, or one
that is built from this repository."""

import atexit
import os
import shutil
import subprocess
import tempfile

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def provide():
    """Sets FOLDLOG_BINARY, also for the processes that tests start."""
    if os.environ.get("FOLDLOG_BINARY"):
        return
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    binary = os.path.join(folder, "foldlog")
    subprocess.run(["go", "build", "-o", binary, "./cmd/foldlog"], cwd=_ROOT, check=True)
    os.environ["FOLDLOG_BINARY"] = binary
