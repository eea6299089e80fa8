#!/usr/bin/env bash
# HiGHS 1.16.0 calls an integer program infeasible that has a solution of 18; 1.15.1 and earlier solve it.
#
# The program orders six operators for the least memory: x1 to x20 say which have run by the end of a step, x21 to x41
# which tensors are there, and the peak is minimized. Without presolve 1.16.0 finds the solution, too.
# Versions: highspy 1.16.0 and 1.15.1; seen on 2026-12-01.
# Source: both releases with presolve and without; the solution is put into every row in Python
# Exits with 1 if this changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/program.py" << 'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import highspy

ROWS = """
x1 + x13 = 1; x2 + x3 + x6 + x14 + x17 = 2; x4 + x7 + x10 + x15 + x18 = 2; x5 + x8 + x11 + x16 + x19 = 3
x9 + x12 + x20 = 2; x1 - x2 <= 0; x3 - x4 <= 0; x4 - x5 <= 0; x3 - x1 <= 0; x4 - x2 <= 0; x5 <= 1; x6 - x7 <= 0
x7 - x8 <= 0; x8 - x9 <= 0; x6 - x1 <= 0; x7 - x2 <= 0; x8 <= 1; x9 <= 1; x10 - x11 <= 0; x11 - x12 <= 0
x10 - x2 <= 0; x11 <= 1; x12 <= 1; x10 - x3 <= 0; x11 - x4 <= 0; x12 - x5 <= 0; x13 - x14 <= 0; x14 - x15 <= 0
x15 - x16 <= 0; x17 - x18 <= 0; x18 - x19 <= 0; x19 - x20 <= 0; x17 - x13 <= 0; x18 - x14 <= 0; x19 - x15 <= 0
x20 - x16 <= 0; - x21 <= -1; - x1 - x22 <= -1; - x2 - x23 <= -1; x1 - x24 <= 0; x2 - x25 <= 0; - x3 - x26 <= -1
- x4 - x27 <= -1; - x5 - x28 <= -1; x1 - x24 <= 0; x2 - x25 <= 0; - x6 - x26 <= -1; - x7 - x27 <= -1
- x8 - x28 <= -1; - x9 - x29 <= -1; x1 - x24 <= 0; x2 - x25 <= 0; - x26 <= -1; - x10 - x27 <= -1; - x11 - x28 <= -1
- x12 - x29 <= -1; - x30 <= -1; - x13 - x31 <= -1; - x14 - x32 <= -1; - x15 - x33 <= -1; - x16 - x34 <= -1
- x30 <= -1; - x31 <= -1; - x17 - x32 <= -1; - x18 - x33 <= -1; - x19 - x34 <= -1; - x20 - x35 <= -1
x13 - x36 <= 0; x14 - x37 <= 0; x15 - x17 - x38 <= 0; x16 - x18 - x39 <= 0; - x19 - x40 <= -1; - x20 - x41 <= -1
10 x21 + 4 x24 + 4 x30 + 4 x36 - peak <= 0; 10 x22 + 4 x25 + 4 x31 + 4 x37 + 6 x17 - peak <= 0
10 x23 + 4 x26 + 4 x32 + 4 x38 + x10 + 6 x18 - peak <= 0; 4 x27 + 4 x33 + 4 x39 + x11 + 6 x19 - peak <= 0
4 x28 + 4 x34 + 4 x40 + x12 + 6 x20 - peak <= 0; 4 x29 + 4 x35 + 4 x41 - peak <= -7
"""
rows = [row.strip() for row in ROWS.replace("\n", ";").split(";") if row.strip()]
columns = [f"x{number}" for number in range(1, 42)]
text = ["minimize", f" peak + 0 {' + 0 '.join(columns)}", "subject to", *(f" r{at}: {row}" for at, row in enumerate(rows))]
text += ["bounds", " 14 <= peak <= 18", "general", " peak", "binary", f" {' '.join(columns)}", "end", ""]
file = Path(sys.argv[1])
file.write_text("\n".join(text))


def keeps(row, values):
    left, right = row.replace("<=", "=").split("=")
    total, factor = 0, 1
    for word in left.split():
        if word in "+-":
            factor = 1 if word == "+" else -1
        elif word.isdigit():
            factor *= int(word)
        else:
            total += factor * values[word]
    return total <= int(right) if "<=" in row else total == int(right)


def run(presolve):
    highs = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("presolve", presolve)):
        highs.setOptionValue(name, value)
    highs.readModel(str(file))
    highs.run()
    names = [highs.getColName(column)[1] for column in range(highs.getNumCol())]
    values = dict(zip(names, map(round, highs.getSolution().col_value)))
    return highs.modelStatusToString(highs.getModelStatus()), values


print("highspy", version("highspy"))
found = {presolve: run(presolve) for presolve in ("on", "off")}
for presolve, (status, values) in found.items():
    kept = sum(keeps(row, values) for row in rows)
    print(f"presolve {presolve}: {status}, peak {values['peak']}, {kept} of {len(rows)} rows kept")
status, values = found["off"]
is_solved = status == "Optimal" and values["peak"] == 18 and all(keeps(row, values) for row in rows)
sys.exit(not (is_solved and found["on"][0] == sys.argv[2]))
PYTHON
for release in "1.16.0 Infeasible" "1.15.1 Optimal"; do
    read -r number expected <<< "$release"
    python3 -m venv "$folder/$number"
    "$folder/$number/bin/python" -m pip install --quiet --disable-pip-version-check "highspy==$number"
    "$folder/$number/bin/python" "$folder/program.py" "$folder/program.lp" "$expected"
done
