"""A pytest plugin: Optuna's own storage tests, with Foldlog as the gRPC server.

The mode grpc_journal_file of optuna.testing.storages then is a client of
"foldlog study serve-optuna" on a fresh journal. FOLDLOG names the command.
"""

import os
import shutil
import tempfile

from optuna.testing import storages

import server


class FoldlogSupplier(storages.StorageSupplier):
    def __enter__(self):
        if self.storage_specifier != "grpc_journal_file":
            return super().__enter__()
        self.folder = tempfile.mkdtemp()
        self.foldlog = server.Server(os.path.join(self.folder, "s.atj"), os.environ["FOLDLOG"])
        self.proxy = self.foldlog.proxy()
        return self.proxy

    def __exit__(self, *exc):
        if self.storage_specifier != "grpc_journal_file":
            return super().__exit__(*exc)
        self.proxy.close()
        self.foldlog.stop()
        shutil.rmtree(self.folder)


storages.StorageSupplier = FoldlogSupplier
