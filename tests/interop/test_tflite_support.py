"""Associated files, written and read by the real tflite-support, in an environment of its own.

It pins an old protobuf and wants libusb, so it cannot live beside the interpreters; its wheels end at Python 3.11.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import tflite_memopt
from tests.models import dense_model, quantized_at_the_boundary
from tflite_memopt import Options
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import Io

pytestmark = pytest.mark.slow

PACKAGES = ("tflite-support==0.4.4", "flatbuffers", "numpy<2", "pybind11", "libusb-package", "importlib-resources")
PRELUDE = """
import ctypes, json, sys
import libusb_package
ctypes.CDLL(str(libusb_package.get_library_path()), ctypes.RTLD_GLOBAL)
import flatbuffers
from tensorflow_lite_support.metadata import metadata_schema_py_generated as schema
from tensorflow_lite_support.metadata.python import metadata
"""
POPULATE = """
model, labels = sys.argv[1:]
described = schema.ModelMetadataT()
described.name = "interoperability"
file = schema.AssociatedFileT()
file.name = "labels.txt"
described.associatedFiles = [file]
described.subgraphMetadata = [schema.SubGraphMetadataT()]
described.subgraphMetadata[0].inputTensorMetadata = [schema.TensorMetadataT()]
normalized = schema.ProcessUnitT()
normalized.optionsType = schema.ProcessUnitOptions.NormalizationOptions
normalized.options = schema.NormalizationOptionsT()
normalized.options.mean, normalized.options.std = [127.5], [127.5]
described.subgraphMetadata[0].inputTensorMetadata[0].name = "picture"
described.subgraphMetadata[0].inputTensorMetadata[0].processUnits = [normalized]
described.subgraphMetadata[0].outputTensorMetadata = [schema.TensorMetadataT()]
builder = flatbuffers.Builder(0)
builder.Finish(described.Pack(builder), metadata.MetadataPopulator.METADATA_FILE_IDENTIFIER)
populator = metadata.MetadataPopulator.with_model_file(model)
populator.load_metadata_buffer(builder.Output())
populator.load_associated_files([labels])
populator.populate()
"""
SHOW = """
shown = metadata.MetadataDisplayer.with_model_file(sys.argv[1])
names = shown.get_packed_associated_file_list()
files = {name: shown.get_associated_file_buffer(name).decode() for name in names}
print(json.dumps({"files": files, "metadata": json.loads(shown.get_metadata_json())}))
"""


@pytest.fixture(scope="module")
def support(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.version_info >= (3, 12):
        pytest.skip("tflite-support has no wheel for this Python")
    folder = tmp_path_factory.mktemp("support")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"tflite-support cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python


def run(python: Path, code: str, *arguments: Path) -> str:
    command = [str(python), "-c", PRELUDE + code, *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


@pytest.mark.slow
@pytest.mark.parametrize(("build", "io"), [(dense_model, "keep"), (quantized_at_the_boundary, "int8")])
def test_tflite_support_reads_what_it_wrote_after_the_model_was_optimized(
    support: Path, tmp_path: Path, build: Callable[[], Model], io: Io
) -> None:
    model, labels, optimized = tmp_path / "m.tflite", tmp_path / "labels.txt", tmp_path / "o.tflite"
    model.write_bytes(write_model(build()))
    labels.write_text("cat\ndog\n")
    run(support, POPULATE, model, labels)
    before = json.loads(run(support, SHOW, model))
    options = Options(runtimes=("litert", "tflm"), samples=2, io=io)
    optimized.write_bytes(tflite_memopt.optimize(model, options).model)
    after = json.loads(run(support, SHOW, optimized))
    assert before["files"] == {"labels.txt": "cat\ndog\n"}
    assert after == before
    assert before["metadata"]["subgraph_metadata"][0]["input_tensor_metadata"][0]["name"] == "picture"


@pytest.mark.skipif("TFLITE_MEMOPT_MODELS" not in os.environ, reason="TFLITE_MEMOPT_MODELS names no folder")
def test_associated_files_of_real_models_stay_readable(support: Path, tmp_path: Path) -> None:
    from tflite_memopt.model.io.reader import read_model

    for path in sorted(Path(os.environ["TFLITE_MEMOPT_MODELS"]).glob("*.tflite")):
        if read_model(path.read_bytes()).associated_files:
            optimized = tmp_path / path.name
            optimized.write_bytes(tflite_memopt.optimize(path, Options(verify=False)).model)
            assert json.loads(run(support, SHOW, optimized)) == json.loads(run(support, SHOW, path))
