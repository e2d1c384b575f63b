"""results.parquet, results.csv, pairs.parquet and best.yaml, read back as other programs read them."""

import csv
import io
import json
import math
import statistics
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.account_columns import ACCOUNT_COLUMNS
from orchestrator.answer import RunReport, build_report
from orchestrator.divergence_columns import DIVERGENCE_COLUMNS
from orchestrator.loop_columns import LOOP_COLUMNS
from orchestrator.machine_columns import MACHINE_COLUMNS
from orchestrator.result_columns import NOT_MEASURED_YET
from orchestrator.results_table import best_yaml, results_table, to_csv, write_results
from orchestrator.search_space import parse_space
from tests import report_example
from tests.built_outcomes import completed, config, ended, spec
from trainables.measurements import CompileMeasurement, LearningCurve, PrecisionMeasurement, ThroughputMeasurement
from trainables.outcomes import DeviceFacts, TrialOutcome
from trainables.spec_door import spec_from_text
from trainables.specs import MeasurementProtocol
from trainables.storage import Storage

CONTRACT = [
    "trial_id",
    "replicate",
    "status",
    "status_reason",
    "attempts",
    "rank",
    "on_pareto_front",
    "precision",
    "batch_size",
    "compile",
    "lr",
    "num_workers",
    "seed",
    "weight_decay",
    "optimizer",
    "gradient_clip_norm",
    "channels_last",
    "prefetch_factor",
    "persistent_workers",
    "model",
    "dataset",
    "epochs",
    "epochs_completed",
    "accuracy",
    "accuracy_by_epoch",
    "train_loss",
    "validation_loss",
    "objective",
    "objective_name",
    "objective_direction",
    "unit",
    "units_per_second",
    "images_per_second",
    "images_per_second_low",
    "images_per_second_high",
    "window_images",
    "window_seconds",
    "compute_images_per_second",
    "loader_images_per_second",
    "data_wait_fraction",
    "bottleneck",
    "compile_seconds",
    "evaluation_compile_seconds",
    "compile_cache",
    "graph_breaks",
    "graph_break_reasons",
    "recompilations",
    "compile_break_even_epochs",
    "skipped_steps",
    "final_loss_scale",
    "peak_memory_bytes",
    "train_seconds",
    "evaluation_seconds",
    "setup_seconds",
    "trial_seconds",
    "time_to_accuracy_seconds",
    "device",
    "compute_capability",
    "executed_precision",
    "node",
    "neighbours",
    "cpu_threads",
    "torch_version",
    "cuda_version",
    "driver_version",
    "measurement_version",
]


def stored(report: RunReport, folder: Path) -> pa.Table:
    write_results(report, Storage.open(str(folder)))
    return pq.read_table(folder / "results.parquet")


def row(*outcomes: TrialOutcome) -> dict[str, Any]:
    """The first row."""
    first: dict[str, Any] = results_table(build_report(outcomes)).to_pylist()[0]
    return first


def test_the_columns_are_those_of_the_contract_in_their_order_with_further_ones_behind(tmp_path: Path) -> None:
    names = stored(report_example.report(), tmp_path).column_names
    assert names[: len(CONTRACT)] == CONTRACT
    assert names[len(CONTRACT) :] == [
        "not_ranked_reason",
        "max_steps",
        "measured_on",
        "validation_images",
        "independent_validation_images",
        "notes",
        "finished_at",
        "earlier_trials",
        *ACCOUNT_COLUMNS,
        *MACHINE_COLUMNS,
        *DIVERGENCE_COLUMNS,
        *LOOP_COLUMNS,
    ]


def test_every_outcome_is_a_row_and_ranked_ones_come_first() -> None:
    table = results_table(report_example.report())
    assert table["rank"].to_pylist() == [1, 1, 3, 4, 5, None, None]
    assert table["status"].to_pylist()[5:] == ["out_of_memory", "failed"]
    assert table["status_reason"].to_pylist()[6] == report_example.HOSTILE


def test_a_completed_trial_fills_its_row() -> None:
    asked = spec(config("fp16", 128, "max-autotune", 3e-4, 2, channels_last=True), seed=3, replicate=1)
    windows = ThroughputMeasurement(window_images=(256, 250), window_seconds=(0.5, 0.5), measured_on="copy")
    found = row(
        completed(
            asked,
            attempts=2,
            throughput=windows,
            precision=PrecisionMeasurement(executed_precision="fp16", skipped_steps=1, final_loss_scale=32768.0),
            compilation=CompileMeasurement(
                compile_seconds=8.5, cache="cold", graph_breaks=1, graph_break_reasons=("print",), recompilations=0
            ),
            peak_memory_bytes=2**31,
            device=DeviceFacts(device="NVIDIA H200", compute_capability="9.0", cuda_version="13.0"),
        )
    )
    expected = {
        "trial_id": asked.trial_id,
        "replicate": 1,
        "seed": 3,
        "attempts": 2,
        "rank": 1,
        "on_pareto_front": True,
        "precision": "fp16",
        "compile": "max-autotune",
        "channels_last": True,
        "gradient_clip_norm": None,
        "epochs": 20,
        "accuracy": 0.97,
        "accuracy_by_epoch": [0.5, 0.97],
        "objective": 0.97,
        "objective_name": "accuracy",
        "objective_direction": "max",
        "unit": "images",
        "images_per_second": statistics.median([512.0, 500.0]),
        "units_per_second": 506.0,
        "window_images": [256, 250],
        "window_seconds": [0.5, 0.5],
        "measured_on": "copy",
        "compile_seconds": 8.5,
        "compile_cache": "cold",
        "graph_break_reasons": ["print"],
        "skipped_steps": 1,
        "final_loss_scale": 32768.0,
        "executed_precision": "fp16",
        "device": "NVIDIA H200",
        "compute_capability": "9.0",
        "measurement_version": 1,
        "status_reason": None,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["images_per_second_low"] < 506 < found["images_per_second_high"]


def test_a_trial_that_never_ran_has_nulls_and_no_zeros_for_what_it_has_not() -> None:
    found = row(ended("unsupported", "no node can hold it", device=DeviceFacts()))
    asked = {"trial_id", "replicate", "status", "status_reason", "attempts", "model", "dataset", "epochs", "seed"}
    always = {*asked, "epochs_completed", "measurement_version", "not_ranked_reason", *CONTRACT[7:19]}
    assert {name for name, value in found.items() if value is not None} == always - {"gradient_clip_norm"}


def test_what_nothing_measures_yet_is_null_and_of_its_type() -> None:
    table = results_table(report_example.report())
    for name in NOT_MEASURED_YET:
        assert set(table[name].to_pylist()) == {None}
        assert not pa.types.is_null(table.schema.field(name).type)


def test_why_a_completed_trial_is_not_ranked_is_in_its_row() -> None:
    found = row(completed(spec(config("bf16")), precision=PrecisionMeasurement(executed_precision="fp32")))
    assert (found["status_reason"], found["rank"]) == (None, None)
    assert found["not_ranked_reason"] == "asked for bf16, but what ran was fp32"


def test_a_nan_that_slipped_through_is_null() -> None:
    curve = LearningCurve(accuracy=(math.nan, math.inf), train_loss=(math.nan,))
    endless = ThroughputMeasurement(window_images=(64, 64), window_seconds=(math.nan, 1.0), measured_on="training")
    found = row(completed(curve=curve, throughput=endless))
    assert found["accuracy_by_epoch"] == [None, None]
    assert found["window_seconds"] == [None, 1.0]
    assert (found["accuracy"], found["train_loss"], found["images_per_second"]) == (None, None, None)


def test_the_break_even_of_compiling_is_in_the_compiled_row_alone() -> None:
    outcomes = [completed(), completed(spec(config(compile="default")), rate=2000.0)]
    table = results_table(build_report(outcomes))
    assert table.select(["compile", "compile_break_even_epochs", "compile_break_even_images"]).to_pylist() == [
        {
            "compile": "default",
            "compile_break_even_epochs": pytest.approx(8 / 0.75),
            "compile_break_even_images": pytest.approx(16_000),
        },
        {"compile": "off", "compile_break_even_epochs": None, "compile_break_even_images": None},
    ]


def test_the_accounts_of_compile_and_precision_are_columns() -> None:
    compilation = CompileMeasurement(
        graphs=3, recompilations_while_timed=0, gave_up=False, eager_functions=("forward (model.py:1)",)
    )
    precision = PrecisionMeasurement(
        executed_precision="fp16",
        loss_scale_by_epoch=(65536.0, 32768.0),
        emulated=True,
        tensor_cores=False,
        matmul_precision="highest",
        convolution_tf32=False,
    )
    found = row(completed(spec(config("fp16", compile="default")), compilation=compilation, precision=precision))
    assert {name: found[name] for name in ACCOUNT_COLUMNS} == {
        "compile_graphs": 3,
        "recompilations_while_timed": 0,
        "compile_gave_up": False,
        "compile_eager_functions": ["forward (model.py:1)"],
        "compile_break_even_images": None,
        "loss_scale_by_epoch": [65536.0, 32768.0],
        "emulated": True,
        "tensor_cores": False,
        "matmul_precision": "highest",
        "convolution_tf32": False,
    }
    bare = row(completed(precision=PrecisionMeasurement(executed_precision="fp32")))
    assert {bare[name] for name in ACCOUNT_COLUMNS} == {None}


def test_a_model_of_which_the_compiler_took_nothing_is_not_ranked_as_compiled() -> None:
    """B16: never a silent eager run under the compile label."""
    nothing = CompileMeasurement(compile_seconds=0.1, graphs=0, graph_breaks=1)
    found = row(completed(spec(config(compile="default")), compilation=nothing))
    assert found["rank"] is None
    assert found["not_ranked_reason"] == (
        "asked for compile default, but the compiler took nothing of it: it ran eagerly"
    )


def test_pandas_reads_back_equal_values_of_one_kind_each(tmp_path: Path) -> None:
    """Compile modes, a missing clip norm and a trial without measurements in one table (B32)."""
    outcomes = [
        completed(spec(config(compile="off", num_workers=0))),
        completed(spec(config(compile="max-autotune", num_workers=2, gradient_clip_norm=1.0))),
        ended("failed", "no metrics at all", spec(config("fp16"))),
    ]
    table = stored(build_report(outcomes), tmp_path)
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert sorted(frame["compile"]) == ["max-autotune", "off", "off"]
    assert frame["num_workers"].dtype == pd.ArrowDtype(pa.int64())
    assert frame["accuracy"].isna().tolist() == [False, False, True]
    assert frame["gradient_clip_norm"].isna().sum() == 2
    assert table.to_pylist() == results_table(build_report(outcomes)).to_pylist()


def test_the_csv_has_the_rows_and_columns_of_the_parquet_file(tmp_path: Path) -> None:
    table = stored(report_example.report(), tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "results.csv").read_text(encoding="utf-8"))))
    assert list(rows[0]) == table.column_names
    for read, original in zip(rows, table.to_pylist(), strict=True):
        assert {name: as_cell(value) for name, value in original.items()} == read


def as_cell(value: object) -> str:
    if isinstance(value, list):
        return json.dumps(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def test_numbers_survive_the_csv_to_the_last_bit() -> None:
    (found,) = csv.DictReader(io.StringIO(to_csv(results_table(build_report([completed(rate=1 / 3)])))))
    assert float(found["images_per_second"]) == row(completed(rate=1 / 3))["images_per_second"]


def test_pairs_have_their_knob_values_trials_and_verdicts(tmp_path: Path) -> None:
    outcomes = [completed(), completed(spec(config("bf16")), rate=2000.0, accuracy=0.98)]
    write_results(build_report(outcomes), Storage.open(str(tmp_path)))
    (pair,) = pq.read_table(tmp_path / "pairs.parquet").to_pylist()
    assert pair["knob"] == "precision"
    assert (pair["before"], pair["after"]) == ("fp32", "bf16")
    assert (pair["before_trial_id"], pair["after_trial_id"]) == tuple(outcome.spec.trial_id for outcome in outcomes)
    assert pair["speedup"] == pytest.approx(2.0)
    assert pair["speedup_low"] < 2 < pair["speedup_high"]
    assert pair["accuracy_change"] == pytest.approx(0.01)
    assert (pair["verdict"], pair["scaled_lr_trial_id"]) == ("faster", None)


def test_pairs_of_other_knobs_share_the_columns(tmp_path: Path) -> None:
    outcomes = [
        completed(),
        completed(spec(config(gradient_clip_norm=1.0))),
        completed(spec(config(channels_last=True))),
        completed(spec(config(batch_size=128))),
        completed(spec(config(batch_size=128, lr=2e-3))),
    ]
    write_results(build_report(outcomes), Storage.open(str(tmp_path)))
    pairs = {pair["knob"]: pair for pair in pq.read_table(tmp_path / "pairs.parquet").to_pylist()}
    assert (pairs["gradient_clip_norm"]["before"], pairs["gradient_clip_norm"]["after"]) == (None, "1.0")
    assert (pairs["channels_last"]["before"], pairs["channels_last"]["after"]) == ("false", "true")
    assert pairs["batch_size"]["scaled_lr_trial_id"] == outcomes[4].spec.trial_id
    assert pairs["batch_size"]["scaled_lr_rule"] == "linear"


@pytest.mark.parametrize("outcomes", [[], [ended("failed", "no")]])
def test_a_run_without_results_writes_files_that_read_back(outcomes: list[TrialOutcome], tmp_path: Path) -> None:
    assert stored(build_report(outcomes), tmp_path).num_rows == len(outcomes)
    assert pq.read_table(tmp_path / "pairs.parquet").num_rows == 0
    assert len((tmp_path / "results.csv").read_text().splitlines()) == len(outcomes) + 1


any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
@given(reason=any_text, note=any_text, model=any_text)
def test_any_text_reads_back_as_it_was(reason: str, note: str, model: str, tmp_path: Path) -> None:
    report = build_report([ended("failed", reason, spec(model=model), notes=(note,))])
    (found,) = stored(report, tmp_path).to_pylist()
    assert (found["status_reason"], found["notes"], found["model"]) == (reason, [note], model)


@pytest.mark.parametrize(
    "asked",
    [
        spec(config("bf16", 256, "max-autotune", 1e-5, 2)),
        spec(config("fp16", compile="off", gradient_clip_norm=1.0, channels_last=True, weight_decay=0.0)),
        spec(model_args={"width": 8}, dataset_args={"root": "/data/ä b", "train_limit": 10}, num_classes=7, seed=4),
        spec(protocol=MeasurementProtocol(max_steps=500, report_every_steps=50)),
    ],
)
def test_the_winner_is_a_trial_and_a_search_space_of_one(asked: Any) -> None:
    text = best_yaml(build_report([completed(asked)]))
    assert text is not None
    assert spec_from_text(text, source="best.yaml").trial_id == asked.trial_id
    assert parse_space(text, name="best.yaml").grid().configs == (asked.config,)


def test_the_winner_trains_from_the_seed_that_it_was_measured_with() -> None:
    text = best_yaml(build_report([completed(spec(seed=3, replicate=2))]))
    assert text is not None
    assert spec_from_text(text, source="best.yaml").training_seed == 5


def test_there_is_no_winner_where_nothing_was_ranked_or_learned() -> None:
    assert best_yaml(build_report([ended("failed")])) is None
    assert best_yaml(build_report([completed(accuracy=0.1, loss=2.31)])) is None
