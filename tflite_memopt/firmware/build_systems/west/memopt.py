"""`west memopt`: `tflite-memopt optimize` and `codegen` for the Zephyr of a workspace, whose TFLM it names."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from west.commands import WestCommand


class Memopt(WestCommand):
    """The command; words that it does not know are options of `optimize`."""

    def __init__(self):
        super().__init__(
            "memopt",
            "reduce the RAM of a .tflite model for the Zephyr of this workspace",
            "Optimizes MODEL, writes DIR/NAME.tflite and its C++ files, and fails if it is over the budget. Other "
            "options are those of `tflite-memopt optimize`, such as --budget 64K --target nrf52840dk.",
            accepts_unknown_args=True,
        )

    def do_add_parser(self, parser_adder):
        """Declare what `optimize` does not have."""
        parser = parser_adder.add_parser(self.name, help=self.help, description=self.description)
        parser.add_argument("model", metavar="MODEL")
        parser.add_argument("-d", "--directory", default="src/model", metavar="DIR", help="[default: src/model]")
        return parser

    def do_run(self, args, unknown):
        """Run both commands; the first that fails gives the exit code."""
        tool, model, folder = shutil.which("tflite-memopt"), Path(args.model), Path(args.directory)
        if tool is None:
            self.die("tflite-memopt is not on the path: activate its environment")
        folder.mkdir(parents=True, exist_ok=True)
        small = folder / model.name
        tflm = [] if any(word.split("=")[0] == "--tflm" for word in unknown) else ["--tflm", self._tflm()]
        for command in (
            [tool, "optimize", model, "-o", small, "--force", *tflm, *unknown],
            [tool, "codegen", small, "-o", folder, "--force"],
        ):
            code = subprocess.run(command, check=False).returncode
            if code:
                sys.exit(code)

    def _tflm(self):
        """Return the name of the TFLM that this Zephyr brings, such as zephyr-4.2."""
        (zephyr,) = self.manifest.get_projects(["zephyr"])
        text = Path(zephyr.abspath, "VERSION").read_text()
        major, minor = (re.search(rf"VERSION_{part} *= *(\d+)", text)[1] for part in ("MAJOR", "MINOR"))
        return f"zephyr-{major}.{minor}"
