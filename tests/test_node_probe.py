"""Asking a machine for its facts: this one really, and what its files say of others."""

import sys
from pathlib import Path

import pytest
import torch

from orchestrator.node_asking import answer_of, ask_this_machine
from trainables.capability import nvidia_capability
from trainables.node_facts import node_facts_to_mapping
from trainables.node_probe import find_node_facts, usable_cpus, usable_memory
from trainables.storage_probe import Token, find_storage_facts, token_in
from trainables.torch_facts import find_torch_facts, native_precisions


@pytest.mark.parametrize(
    ("affinity", "cpu_max", "cpus"),
    [(8, "", 8), (8, "max 100000\n", 8), (8, "250000 100000\n", 2), (8, "50000 100000", 1), (2, "800000 100000", 2)],
)
def test_a_containers_quota_of_cores_counts(affinity: int, cpu_max: str, cpus: int) -> None:
    assert usable_cpus(affinity, cpu_max) == cpus


@pytest.mark.parametrize(
    ("memory_max", "memory"), [("", 100), ("max\n", 100), ("60\n", 60), ("9223372036854771712", 100)]
)
def test_a_containers_limit_of_memory_counts(memory_max: str, memory: int) -> None:
    assert usable_memory(100, memory_max) == memory


def test_precisions_that_a_card_only_emulates_are_not_native() -> None:
    assert native_precisions(nvidia_capability("V100", (7, 0), has_triton=True)) == ("fp32", "fp16")
    assert native_precisions(nvidia_capability("H200", (9, 0), has_triton=True)) == ("fp32", "tf32", "fp16", "bf16")


def test_torch_is_asked_for_every_gpu_it_has() -> None:
    facts = find_torch_facts()
    assert facts.version == torch.__version__
    assert len(facts.gpus) == (torch.accelerator.device_count() if torch.accelerator.is_available() else 0)
    assert "fp32" in facts.cpu_native_precisions


def test_this_machine_answers_in_a_process_of_its_own(tmp_path: Path) -> None:
    answer = ask_this_machine("here", str(tmp_path / "runs"))
    assert answer.fault is None
    assert answer.facts is not None
    assert answer.facts.torch is not None
    assert answer.facts.torch.version == torch.__version__
    assert dict(answer.facts.versions)["python"] == sys.version.split()[0]
    assert answer.facts.storage.location == str(tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_a_probe_that_dies_is_a_fault_with_its_last_words() -> None:
    assert answer_of("far", -11, "", "Traceback\nOSError: libcuda.so").fault == "exit code -11: OSError: libcuda.so"
    assert answer_of("far", 1, '{"node": 3}', "").fault == "exit code 1: it said nothing"


def test_warnings_before_the_answer_do_no_harm(tmp_path: Path) -> None:
    import json

    facts = find_node_facts(str(tmp_path))
    output = f"a library's banner\n{json.dumps(node_facts_to_mapping(facts))}\n"
    assert answer_of("here", 0, output, "").facts == facts


def test_a_storage_that_is_not_there_yet_is_tried_where_it_would_be_made(tmp_path: Path) -> None:
    facts = find_storage_facts(str(tmp_path / "a" / "b"))
    assert (facts.fault, facts.shared) == (None, None)
    assert facts.free_bytes
    assert list(tmp_path.iterdir()) == []


def test_a_storage_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert find_storage_facts(str(tmp_path / "file" / "runs")).fault


def test_a_storage_with_the_token_is_shared_and_one_without_it_is_not(tmp_path: Path) -> None:
    with token_in(str(tmp_path / "runs")) as token:
        assert find_storage_facts(str(tmp_path / "runs"), token).shared is True
    assert find_storage_facts(str(tmp_path), token).shared is False
    assert find_storage_facts(str(tmp_path), Token(folder=str(tmp_path / "none"), name="x")).shared is False
    assert list(tmp_path.iterdir()) == []
