"""A report for other programs: results.parquet, results.csv, pairs.parquet, and best.yaml."""

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.answer import RunReport
from orchestrator.compile_payback import payback
from orchestrator.pair_columns import PAIR_SCHEMA, pair_row
from orchestrator.result_columns import Row, result_row, result_schema
from orchestrator.statistics import estimate_rate
from trainables.spec_door import spec_to_yaml
from trainables.storage import Storage


def write_results(report: RunReport, storage: Storage) -> None:
    """Into the run's folder. The CSV has the same rows and columns as the Parquet file."""
    table = results_table(report)
    storage.write("results.parquet", _parquet(table))
    storage.write("results.csv", to_csv(table).encode())
    storage.write("pairs.parquet", _parquet(pairs_table(report)))


def results_table(report: RunReport) -> pa.Table:
    """One row for each result, ranked ones first and in order of rank."""
    standings = {
        result: standing for ranking in report.rankings for standing in ranking.standings for result in standing.results
    }
    reasons = {entry.result: entry.reason for entry in report.not_ranked}
    paybacks = {pair.after: earned for pair in report.pairs if (earned := payback(pair)) is not None}
    rows = [
        result_row(
            Row(
                result=result,
                standing=standings.get(result),
                not_ranked_reason=reasons.get(result),
                rate=estimate_rate([result.rate], report.between[result.key]) if result.rate else None,
                payback=paybacks.get(result),
            )
        )
        for result in report.results
    ]
    return pa.Table.from_pylist(rows, schema=result_schema())


def pairs_table(report: RunReport) -> pa.Table:
    return pa.Table.from_pylist([pair_row(pair) for pair in report.pairs], schema=PAIR_SCHEMA)


def best_yaml(report: RunReport) -> str | None:
    """The winner as a space of one configuration, with the seed of its first run; None where nothing is recommended."""
    winner = report.winner
    if winner is None or winner.learned_nothing:
        return None
    return spec_to_yaml(winner.results[0].outcome.spec)


def to_csv(table: pa.Table) -> str:
    """An empty cell is null; `true` and `false`; a list is JSON in one cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=1000):
        for row in batch.to_pylist():
            writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value, allow_nan=False)
    if isinstance(value, bool):
        return str(value).lower()
    return value


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
