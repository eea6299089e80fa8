"""The command line of both converters."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Collection
from pathlib import Path


def folder_and_names(known: Collection[str], by_default: Collection[str]) -> tuple[Path, Collection[str]]:
    """Return where files go, and the networks to convert; ends with a line of help for a name that is not known."""
    parser = ArgumentParser(description="Convert networks of PyTorch to .tflite files.")
    parser.add_argument("folder", type=Path, help="for the files; those that exist are kept")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(known)}")
    given = parser.parse_args()
    for name in given.names:
        if name.partition("@")[0] not in known:
            parser.error(f"there is no network '{name}': choose of {', '.join(known)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    return given.folder, given.names or by_default
