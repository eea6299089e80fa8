"""Results as a Parquet file, for those who go on with them in pandas, Polars or DuckDB."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from ..errors import UsageError


def parquet_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """A stored table as a Parquet file. Raises UsageError when pyarrow is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError("a Parquet file needs pyarrow: run pip install 'tflite-memopt[parquet]'") from error
    table = pyarrow.table({column: [row[number] for row in rows] for number, column in enumerate(columns)})
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    return stream.getvalue()
