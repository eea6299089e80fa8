"""Instructions of making an interpreter and of a run, in QEMU."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from scripts.device_lab.build import NATIVE, default_cache
from scripts.device_lab.builds import BUILDS
from scripts.device_lab.firmware import compiled_program
from scripts.device_lab.sources import needed_sources
from tflite_memopt.firmware.generate import generate
from tflite_memopt.io.files import write_folder

_MAIN = """
#include <cstdint>
#include <cstdio>
#include <new>
#include "arena.h"
#include "counter.h"
#include "model_data.h"
#include "planner.h"
#include "resolver.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
alignas(16) uint8_t arena[model::kArenaBytes];
alignas(16) unsigned char place[sizeof(tflite::MicroInterpreter)];
int main() {
  static model::Resolver resolver;
  if (!model::RegisterOperators(resolver)) return 1;
  static uint8_t* const memories[] = {arena};
  StartCounter();
  uint64_t start = Instructions();
  while (start > 1000000) start = Instructions();  // the counter has not begun yet
  tflite_memopt::TablePlanner planner(model::kPlan, memories);
  auto* allocator = tflite::MicroAllocator::Create(arena, sizeof(arena), &planner);
  auto* interpreter = new (place) tflite::MicroInterpreter(tflite::GetModel(model::kModelData), resolver, allocator);
  if (interpreter->AllocateTensors() != kTfLiteOk) return 2;
  const uint64_t ready = Instructions();
  if (interpreter->Invoke() != kTfLiteOk) return 3;
  const uint64_t done = Instructions();
  interpreter->~MicroInterpreter();
  const uint64_t end = Instructions();
  printf("making %lu invoke %lu\\n", static_cast<unsigned long>(ready - start + end - done),
         static_cast<unsigned long>(done - ready));
}
"""


_FOUND = re.compile(r"making (\d+) invoke (\d+)")


def measured(data: bytes, target: str, build: str) -> tuple[int, int]:
    """Instructions of making an interpreter of a model, and of a run of it, in QEMU."""
    sources = needed_sources(default_cache())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {**generate(data, target, planner="table"), "main.cc": _MAIN.encode()}
        write_folder(folder, files, (), force=True)
        start = compiled_program(build, BUILDS[build], sources, default_cache(), folder, "main.cc", (f"-I{NATIVE}",))
        command = [*start, "-icount", "shift=0"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout
    numbers = _FOUND.search(said)
    assert numbers is not None, said
    return int(numbers[1]), int(numbers[2])
