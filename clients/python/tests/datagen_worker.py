"""A program of the tests: makes some items, says each step that it does, and dies
by SIGKILL after so many, if it is told to."""

import os
import signal
import sys

import foldlog


def main(root, keys, die_after):
    left = [die_after]

    def did(item, what):
        print(item.key, what, flush=True)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with foldlog.DatagenLog("p/e", root=root) as log:
        for item in log.claim(keys):
            with item:
                item.step("draw", lambda: did(item, "draw") or {"score": 0, "image": item.key.encode()})
                for round in item.loop("refine", most=4):
                    item.step("improve", lambda: did(item, "improve%d" % round) or {"score": item["score"] + 1})
                    if item["score"] > 1:
                        break
                if item["image"].read() == b"b":
                    item.step("drop", lambda: did(item, "drop"), filter=True)
                for index in range(2):
                    with item.sub("parts", index) as part:
                        part.step("make", lambda: did(part, "make") or {"n": index}, append={"log": "made"})
                item.step("reset", lambda: did(item, "reset") or {"score": -1})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]))
