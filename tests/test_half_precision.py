"""Why half precision bought nothing: each known cause from its own numbers, and none where none shows."""

from typing import Any

import pytest

from orchestrator.answer import build_report
from orchestrator.finding_words import finding_words
from orchestrator.findings import Finding, FindingKind
from tests.built_outcomes import completed, config, spec, windows
from trainables.measurements import DiagnosisMeasurement, PrecisionMeasurement
from trainables.outcomes import DeviceFacts, TrialOutcome

GPU = DeviceFacts(device="NVIDIA A100", torch_version="2.14.1")
KINDS = (FindingKind.HALF_PRECISION_SLOWER, FindingKind.HALF_PRECISION_NO_GAIN)


def trial(
    precision: str,
    rate: float,
    *,
    batch_size: int = 64,
    compute: float | None = None,
    host_fraction: float | None = None,
    tensor_cores: bool | None = True,
    emulated: bool = False,
) -> TrialOutcome:
    """On a GPU; without `compute` nothing of its loop was measured."""
    diagnosis = None
    if compute is not None:
        diagnosis = DiagnosisMeasurement(compute=windows(compute), host_fraction=host_fraction)
    ran = PrecisionMeasurement(executed_precision=precision, tensor_cores=tensor_cores, emulated=emulated)
    return completed(
        spec(config(precision, batch_size)),
        rate=rate,
        diagnosis=diagnosis,
        precision=ran,
        device=GPU,
        images=1_000_000,
    )


def only(*outcomes: TrialOutcome) -> Finding:
    (one,) = (found for found in build_report(outcomes).findings if found.kind in KINDS)
    return one


def causes(*outcomes: TrialOutcome) -> list[str]:
    return str(only(*outcomes).evidence["causes"]).split()


def test_half_precision_that_is_clearly_faster_is_no_finding() -> None:
    found = build_report([trial("fp32", 1000.0), trial("bf16", 1200.0)]).findings
    assert not [one for one in found if one.kind in KINDS]


def test_a_loop_that_waits_for_data_hides_what_compute_gained() -> None:
    """B06: compute alone is 1.9 times as fast, and the whole loop no faster."""
    outcomes = [trial("fp32", 207.0, compute=1500.0), trial("bf16", 205.0, compute=2850.0, host_fraction=0.2)]
    words = finding_words(only(*outcomes))
    assert words.sentence == (
        "bf16 was not clearly faster than fp32 in 1 of 1 matched pairs: 0.99× the speed [0.93–1.06] in the middle one. "
        "Training waits for data: 205 images/s, where compute alone gives 2,850, 1.90× that of fp32."
    )
    assert words.advice == "Raise num_workers, or make the loading cheaper, before comparing precisions."


def test_waiting_for_data_is_no_cause_where_compute_alone_gained_nothing_either() -> None:
    outcomes = [trial("fp32", 850.0, compute=1000.0), trial("bf16", 850.0, compute=1010.0, host_fraction=0.2)]
    assert causes(*outcomes) == ["none_shown"]


def test_a_card_without_tensor_cores_for_the_type_and_one_that_emulates_it_are_causes() -> None:
    without = finding_words(only(trial("fp32", 1000.0), trial("fp16", 1000.0, tensor_cores=False)))
    assert "This NVIDIA A100 has no matrix units for it." in without.sentence
    emulating = [trial("fp32", 1000.0), trial("bf16", 100.0, tensor_cores=False, emulated=True)]
    assert only(*emulating).kind is FindingKind.HALF_PRECISION_SLOWER
    assert causes(*emulating) == ["emulated"]
    assert "It is emulated: this NVIDIA A100 has no instructions for it." in finding_words(only(*emulating)).sentence


@pytest.mark.parametrize(("host_fraction", "expected"), [(0.97, "launch_bound"), (0.6, "none_shown")])
def test_a_device_that_waits_for_launches_is_a_cause(host_fraction: float, expected: str) -> None:
    outcomes = [
        trial("fp32", 1000.0, compute=1010.0),
        trial("fp16", 1000.0, compute=1010.0, host_fraction=host_fraction),
    ]
    assert causes(*outcomes) == [expected]


@pytest.mark.parametrize(("larger_rate", "expected"), [(1900.0, "batch_too_small"), (1050.0, "none_shown")])
def test_a_batch_too_small_to_fill_the_card_shows_in_the_next_larger_one(larger_rate: float, expected: str) -> None:
    small = [trial("fp32", 1000.0), trial("bf16", 1000.0)]
    large = [trial("fp32", larger_rate * 0.6, batch_size=256), trial("bf16", larger_rate, batch_size=256)]
    largest = [trial("fp32", 3000.0, batch_size=512), trial("bf16", 9000.0, batch_size=512)]
    found = only(*small, *large, *largest)
    assert found.evidence["causes"] == expected
    if expected == "batch_too_small":
        assert "Batch size 64 does not fill the device: at 256 there are 1.90× as many" in finding_words(found).sentence


def test_a_larger_batch_says_nothing_of_the_card_where_the_loop_waits_for_data() -> None:
    outcomes = [
        trial("fp32", 200.0, compute=1000.0),
        trial("bf16", 200.0, compute=2000.0),
        trial("fp32", 300.0, batch_size=256),
        trial("bf16", 400.0, batch_size=256),
    ]
    assert causes(*outcomes) == ["data_bound"]


def test_the_compute_of_both_batches_decides_where_it_is_known() -> None:
    outcomes = [
        trial("fp32", 200.0, compute=1000.0),
        trial("bf16", 200.0, compute=2000.0),
        trial("fp32", 200.0, batch_size=256, compute=1800.0),
        trial("bf16", 300.0, batch_size=256, compute=3800.0),
    ]
    assert causes(*outcomes) == ["data_bound", "batch_too_small"]


def test_where_no_cause_shows_it_says_so_and_what_was_not_measured() -> None:
    words = finding_words(only(trial("fp32", 1000.0), trial("bf16", 1000.0, tensor_cores=None)))
    assert words.sentence.endswith(
        "None of the known causes shows in the numbers; not known: whether the device has matrix units for the type, "
        "how fast its compute alone is, whether the device waits for launches, how fast a larger batch is."
    )
    known: dict[str, Any] = {"compute": 1010.0, "host_fraction": 0.3}
    large = [trial("fp32", 1000.0, batch_size=128, **known), trial("bf16", 1070.0, batch_size=128, compute=1080.0)]
    found = only(trial("fp32", 1000.0, **known), trial("bf16", 1000.0, **known), *large)
    assert finding_words(found).sentence.endswith("None of the known causes shows in the numbers.")


def test_pairs_of_one_cause_are_one_finding_and_those_of_another_one_of_their_own() -> None:
    outcomes = [
        *(trial("fp32", 1000.0, batch_size=size, compute=1010.0) for size in (64, 65, 512)),
        *(trial("bf16", 1000.0, batch_size=size, compute=1010.0, host_fraction=0.95) for size in (64, 65)),
        trial("bf16", 1000.0, batch_size=512, compute=2000.0, host_fraction=0.1),
    ]
    found = [one for one in build_report(outcomes).findings if one.kind in KINDS]
    assert sorted((str(one.evidence["causes"]), one.evidence["count"]) for one in found) == [
        ("data_bound", 1),
        ("launch_bound", 1),
        ("launch_bound batch_too_small", 1),
    ]


def test_the_speed_shown_is_that_of_the_pair_whose_interval_is_shown() -> None:
    rates = {64: 1000.0, 65: 500.0}
    outcomes = [trial("fp32", rate, batch_size=size) for size, rate in rates.items()]
    outcomes += [trial("bf16", rate * 0.99 if size == 64 else rate, batch_size=size) for size, rate in rates.items()]
    found = [one for one in build_report(outcomes).findings if one.kind in KINDS]
    assert [one.evidence["count"] for one in found] == [2]
    low, value, high = (float(found[0].evidence[name]) for name in ("speedup_low", "speedup", "speedup_high"))
    assert value**2 == pytest.approx(low * high)
