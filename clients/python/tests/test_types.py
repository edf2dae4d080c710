"""Types and documentation of every public name."""

import importlib.util
import inspect
import os
import unittest

import foldlog


def members(name, thing):
    """What of a public name is called or read: itself, and of a class its methods."""
    if inspect.isfunction(thing):
        yield name, thing
    if inspect.isclass(thing):
        for key, member in vars(thing).items():
            if isinstance(member, property):
                member = member.fget
            if inspect.isfunction(member) and (not key.startswith("_") or key in ("__init__", "__enter__", "__exit__")):
                yield name + "." + key, member


def public():
    for name in foldlog.__all__:
        yield name, getattr(foldlog, name)
    for name in ("lightning", "huggingface", "keras"):
        yield "callbacks." + name, getattr(foldlog.callbacks, name)


class Types(unittest.TestCase):
    def test_everything_public_is_annotated(self):
        for name, thing in public():
            for path, function in members(name, thing):
                if function.__module__.startswith("foldlog"):  # and is no dataclass's own
                    signature = inspect.signature(function)
                    missing = [p.name for p in signature.parameters.values() if p.name != "self" and p.annotation is p.empty]
                    generated = path.endswith(".__init__") and "__dataclass_fields__" in vars(thing)
                    if missing or signature.return_annotation is signature.empty and not generated:
                        self.fail("%s: %s" % (path, missing or "what it returns"))

    def test_everything_public_is_documented(self):
        for name, thing in public():
            self.assertTrue(thing.__doc__, name)
            for path, function in members(name, thing):
                self.assertTrue(function.__doc__ or "__" in path, path)

    def test_the_package_says_that_it_has_types(self):
        folder = os.path.dirname(importlib.util.find_spec("foldlog").origin)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))
        with open(os.path.join(os.path.dirname(folder), "pyproject.toml")) as f:
            self.assertIn('foldlog = ["py.typed"]', f.read())


if __name__ == "__main__":
    unittest.main()
