"""A process of "foldlog study serve-optuna"."""

import signal
import subprocess

from optuna.storages import GrpcStorageProxy


class Server:
    def __init__(self, path, binary, addr="127.0.0.1:0"):
        command = [binary, "study", "serve-optuna", path, "--addr", addr]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        host, port = self.process.stdout.readline().strip().rsplit(":", 1)
        self.host, self.port = host, int(port)

    def proxy(self):
        storage = GrpcStorageProxy(host=self.host, port=self.port)
        storage.wait_server_ready(timeout=60)
        return storage

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(10) == 0, "the server did not end well"
