"""What a server gets of lines that wait in memory."""

import ssl
import unittest
import urllib.error
from unittest import mock

from foldlog import _server
from foldlog._targets import Line


class Streams:
    """A server's streams, by id."""

    def __init__(self):
        self.have = {}

    def append(self, _slug, stream, offset, lines):
        have = self.have.get(stream, b"")
        if offset > len(have):
            raise _server.Conflict(len(have), "a gap")
        overlap = min(len(have) - offset, len(lines))
        if have[offset : offset + overlap] != lines[:overlap]:
            raise _server.Conflict(len(have), "other bytes")
        if lines[overlap:]:
            self.have[stream] = have + lines[overlap:]
        return {"offset": len(self.have.get(stream, b"")), "page": ""}


class Upload(unittest.TestCase):
    def test_processes_that_open_alike_do_not_lose_their_first_line(self):
        streams = Streams()
        with mock.patch.object(_server.threading.Thread, "start"):
            targets = [_server.ServerTarget("http://nowhere", "", "run") for _ in range(2)]
        for t in targets:
            t._up.client = streams
        for t in targets:
            t.put(Line(b'{"open":1}\n'))
            t._step()
        for i, t in enumerate(targets):
            t.put(Line(b'{"metric":%d}\n' % i))
            t._step()
        self.assertEqual(sorted(streams.have.values()), [b'{"open":1}\n{"metric":%d}\n' % i for i in range(2)])

    def test_a_certificate_that_nobody_knows_is_told_with_what_to_do(self):
        error = urllib.error.URLError(ssl.SSLCertVerificationError("self-signed certificate"))
        self.assertIn("SSL_CERT_FILE names the file", str(_server._reason(error)))
        self.assertEqual(str(_server._reason(urllib.error.URLError("refused"))), "refused")


if __name__ == "__main__":
    unittest.main()
