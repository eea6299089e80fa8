"""Several networks in one arena, compiled with the real TFLM, against each alone in the wheel's interpreter."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.faults import raises
from tests.firmware.compiled import HOST, OF_A_PROGRAM, RIGHT, check_against_the_interface, run_on_tflm
from tests.firmware.test_own_buffers import wanted
from tests.firmware.test_plan_table import changed
from tests.models import dense_model, mobile_chain, streaming_model
from tflite_memopt import Options, UsageError, optimize
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.firmware.files import files_of_networks
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run.parts.sharing import Sharing, share

from .test_program_firmware import MODELS, in_parts

pytestmark = [pytest.mark.xdist_group("programs"), pytest.mark.slow]  # in one process, which optimizes each model once
MAIN = Path(__file__).parent / "shared_networks.cc"
RUNS = 24
WHOLE = {"wake": streaming_model, "chain": mobile_chain, "dense": dense_model}


def sources(folder: Path, target: str, *names: str) -> list[Path]:
    """Model files, and for those of MODELS folders with their parts."""
    paths = []
    for name in names:
        path = folder / (name if name in MODELS else f"{name}.tflite")
        if name in MODELS:
            path.mkdir()
            in_parts(name, target)[1].save(path)
        else:
            options = Options(verify=False, cascade=False, target=target)
            path.write_bytes(optimize(write_model(WHOLE[name]()), options).model)
        paths.append(path)
    return paths


def written(folder: Path, sharing: Sharing) -> Path:
    for path, text in files_of_networks(sharing.firmware("models")).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    names = [network.name for network in sharing.networks]
    listed = " ".join(f"X({name})" for name in names)
    (folder / "networks.h").write_text(
        f"#define NETWORKS(X) {listed}\nconstexpr unsigned kCount = {len(names)};\nconstexpr int kRuns = {RUNS};\n"
    )
    shutil.copy(MAIN, folder)
    arena = r"alignas\(16\) inline uint8_t arena\[kArenaBytes\] TFLITE_MEMOPT_IN_ARENA;"
    guarded = "alignas(16) inline uint8_t guarded[kArenaBytes + 64];\ninline uint8_t* const arena = guarded + 32;"
    changed(folder, "models.h", arena, guarded)
    return folder


def check_outputs(said: str, names: tuple[str, ...]) -> None:
    """Each network computed what it computes alone, over as many runs."""
    runs = 0
    for name in names:
        model = write_model((MODELS | WHOLE)[name]())
        found = [line.removeprefix(f"{name} ") for line in said.splitlines() if line.startswith(f"{name} ")]
        outputs = 2 if name == "residual" else 1
        assert len(found) > outputs
        assert found == wanted(model, len(found) // outputs, {})
        runs += len(found) // outputs
    assert runs == RUNS


@pytest.mark.slow
@pytest.mark.parametrize("one_at_a_time", [False, True])
def test_networks_in_any_order_compute_what_they_do_alone(one_at_a_time: bool, tmp_path: Path) -> None:
    names = ("wake", "separable", "chain", "residual")
    sharing = share(sources(tmp_path, HOST, *names), one_at_a_time, HOST)
    kept = [network.name for network in sharing.networks if network.kept]
    assert kept == ["wake", *([] if one_at_a_time else ["chain"])]
    assert sharing.arena < sum(sharing.alone)
    code, said = run_on_tflm(written(tmp_path / "firmware", sharing), MAIN.name)
    assert code == 0, said
    check_outputs(said, names)


def test_the_arena_of_those_that_stay_alive_is_the_smallest(tmp_path: Path) -> None:
    names = ("wake", "dense", "chain")
    sharing = share(sources(tmp_path, HOST, *names))
    folder = written(tmp_path / "firmware", sharing)
    code, said = run_on_tflm(folder, MAIN.name)
    assert code == 0, said
    check_outputs(said, names)
    changed(folder, "models.h", r"(kArenaBytes = \d+)", r"\1 - 16")
    code, said = run_on_tflm(folder, MAIN.name)
    assert code == 2, said


def test_one_at_a_time_the_arena_is_that_of_the_largest(tmp_path: Path) -> None:
    sharing = share(sources(tmp_path, HOST, "chain", "dense", "separable"), one_at_a_time=True)
    assert not any(network.kept for network in sharing.networks)
    assert sharing.arena == max(sharing.alone)


@pytest.mark.parametrize("one_at_a_time", [False, True])
def test_it_compiles_without_a_word(one_at_a_time: bool, tmp_path: Path) -> None:
    sharing = share(sources(tmp_path, HOST, "wake", "separable", "chain"), one_at_a_time)
    folder = written(tmp_path / "firmware", sharing)
    assert check_against_the_interface(folder, *RIGHT, mains=OF_A_PROGRAM) == ""


def test_a_state_that_is_not_kept_is_noticed(tmp_path: Path) -> None:
    """The negative control: the streaming model made anew forgets."""
    names = ("wake", "chain")
    folder = written(tmp_path / "firmware", share(sources(tmp_path, HOST, *names)))
    changed(folder, "models.h", r"if \(is_made\) return kTfLiteOk;", "")
    code, said = run_on_tflm(folder, MAIN.name)
    assert code == 0, said
    with pytest.raises(AssertionError):
        check_outputs(said, names)


def test_structures_that_others_would_overwrite_do_not_compile(tmp_path: Path) -> None:
    folder = written(tmp_path / "firmware", share(sources(tmp_path, HOST, "wake", "separable")))
    changed(folder, "models.h", r"(kArenaBytes = \d+)", r"\1 - 16")
    with pytest.raises(RuntimeError, match="networks would overwrite these structures"):
        run_on_tflm(folder, MAIN.name)


def test_models_are_made_in_the_order_given(tmp_path: Path) -> None:
    paths = sources(tmp_path, HOST, "dense", "wake", "separable", "chain")
    for order in ((0, 1, 2, 3), (3, 2, 1, 0)):
        text = files_of_networks(share([paths[at] for at in order]).firmware("models"))["models.h"].decode()
        kept = ", ".join(f"kParts_{paths[at].stem}" for at in order if paths[at].is_file())
        assert f"kKept[] = {{{kept}}};" in text


def test_from_the_command_line(tmp_path: Path) -> None:
    paths = list(map(str, sources(tmp_path, "cortex-m7", "chain", "separable")))
    done = CliRunner().invoke(cli, ["codegen", *paths, "-o", str(tmp_path / "firmware")])
    assert done.exit_code == 0, done.output
    assert "cortex-m7" in done.output
    assert (tmp_path / "firmware" / "models.h").is_file()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--planner", "table"), "--planner, --original"),
        (("--memory", "sram=64K"), "--planner, --original"),
        (("--temporaries-apart",), "--planner, --original"),
    ],
)
def test_options_of_one_model_are_refused_for_several(more: tuple[str, ...], said: str, tmp_path: Path) -> None:
    paths = list(map(str, sources(tmp_path, HOST, "chain", "separable")))
    done = CliRunner().invoke(cli, ["codegen", *paths, "-o", str(tmp_path / "firmware"), *more])
    assert done.exit_code == 2
    assert said in done.output
    alone = CliRunner().invoke(cli, ["codegen", paths[0], "-o", str(tmp_path / "firmware"), "--one-at-a-time"])
    assert alone.exit_code == 2
    assert "--one-at-a-time" in alone.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda paths: [paths[0], paths[0]], "chain"),
        (lambda paths: [paths[0], paths[1].parent], "program.json"),
        (lambda paths: [paths[0], paths[1] / "program.json"], "program.json"),
    ],
)
def test_what_cannot_be_shared_is_told(change: object, said: str, tmp_path: Path) -> None:
    assert callable(change)
    paths = sources(tmp_path, HOST, "chain", "separable")
    done = CliRunner().invoke(cli, ["codegen", *map(str, change(paths)), "-o", str(tmp_path / "firmware")])
    assert done.exception is not None
    assert said in str(done.exception)
    assert not (tmp_path / "firmware").exists()


def test_a_model_for_any_kernels_needs_a_target(tmp_path: Path) -> None:
    for name in ("chain", "dense"):
        (tmp_path / f"{name}.tflite").write_bytes(write_model(WHOLE[name]()))
    with raises(UsageError, ErrorKind.NO_TARGET):
        share([tmp_path / "chain.tflite", tmp_path / "dense.tflite"])
