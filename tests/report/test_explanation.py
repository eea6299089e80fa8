"""The tables of --explain: one row a reason, however many operators it holds for."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

import tflite_memopt
from tests.models import dense_model
from tflite_memopt import Options
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Refusal, RewriteUse
from tflite_memopt.report.document import text_of
from tflite_memopt.report.documents import report_document


def test_refusals_are_grouped_by_reason_and_names_are_cut() -> None:
    report = tflite_memopt.optimize(write_model(dense_model()), Options(verify=False)).report
    refused = [Refusal("split", f"conv{n}", "[it] requantizes") for n in range(12)]
    refused.insert(3, Refusal("split", "other", "batch 2"))
    refused += [Refusal("cut", f"add{n}", f"its operand 'z{n}' is shared") for n in range(2)]
    refused.append(Refusal("pad", "pad0", "'\udcff' is wide"))
    used = RewriteUse("split + push", ("a", "b", "c", "d", "\udcff"), "exact", 12_345)
    console = Console(width=120, record=True, file=StringIO())
    console.print(text_of(report_document(replace(report, rewrites=(used,), refused=tuple(refused)))))
    lines = console.export_text().splitlines()
    [many] = [line for line in lines if "requantizes" in line]
    assert [cell.strip() for cell in many.split("│")[1:5]] == [
        "split",
        "[it] requantizes",
        "12",
        "conv0, conv1, conv2 and 9 more",
    ]
    assert sum("batch 2" in line for line in lines) == 1
    [shared] = [line for line in lines if "is shared" in line]
    assert "its operand '...' is shared" in shared
    assert "add0, add1" in shared
    assert sum("'?' is wide" in line for line in lines) == 1
    [applied] = [line for line in lines if "12,345" in line]
    assert "a, b, c and 2 more" in applied
