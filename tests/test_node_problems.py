"""Judging machines: built ones, each with one thing wrong."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.node_asking import NodeAnswer
from orchestrator.node_problems import problems_of
from orchestrator.node_words import node_lines, problem_lines
from orchestrator.problems import STOPPING, Problem, ProblemKind
from tests.built_nodes import CPU_TORCH, CUDA_TORCH, GIB, VERSIONS, a_gpu_box, a_laptop, an_h200, answered
from trainables.node_facts import (
    GpuFacts,
    NodeFacts,
    StorageFacts,
    node_facts_from_mapping,
    node_facts_to_mapping,
)

NO_CXX = "torch.compile on a CPU needs a C++ compiler, and there is no 'g++': install g++, or choose compile: off"
NO_GPU = replace(CUDA_TORCH, accelerator=None, accelerator_fault="The NVIDIA driver on your system is too old")


def problems(facts: NodeFacts, declared_gpus: float | None = None) -> list[Problem]:
    return problems_of([answered(facts, declared_gpus)])


@pytest.mark.parametrize("facts", [a_laptop(), a_gpu_box()])
def test_a_machine_in_order_has_no_problem_whether_or_not_it_has_gpus(facts: NodeFacts) -> None:
    assert problems(facts) == []
    assert list(problem_lines([])) == ["No problem found."]


def test_having_no_gpu_is_said_and_is_no_problem() -> None:
    lines = "\n".join(node_lines(answered(a_laptop())))
    assert "none that torch can use: trials run on the CPU" in lines
    assert "torch without CUDA" in lines


CASES: list[tuple[NodeFacts, ProblemKind, str]] = [
    (a_laptop(torch=None, torch_fault="libcudart.so.12: cannot open"), ProblemKind.TORCH_BROKEN, "libcudart.so.12"),
    (a_laptop(versions=tuple((VERSIONS | {"ray": None}).items())), ProblemKind.PACKAGE_MISSING, "installed: ray"),
    (a_laptop(nvidia_cards=2), ProblemKind.TORCH_WITHOUT_CUDA, "2 NVIDIA GPUs here, and torch 2.9.1+cpu"),
    (a_laptop(nvidia_cards=2, torch=NO_GPU), ProblemKind.GPU_UNUSABLE, "too old"),
    (a_laptop(nvidia_cards=1, torch=NO_GPU, gpus_hidden="CUDA_VISIBLE_DEVICES="), ProblemKind.GPUS_HIDDEN, "hidden by"),
    (a_gpu_box(an_h200(), an_h200(1, fault="no kernel image")), ProblemKind.GPU_FAULTY, "GPU 1 (NVIDIA H200)"),
    (a_gpu_box(an_h200(free_memory_bytes=90 * GIB)), ProblemKind.GPU_IN_USE, "90.00 GiB of 140.00 GiB free"),
    (a_gpu_box(an_h200(compile_problem="needs triton: install it")), ProblemKind.NO_COMPILE, "needs triton"),
    (a_laptop(torch=replace(CPU_TORCH, cpu_compile_problem=NO_CXX)), ProblemKind.NO_COMPILE, "no 'g++'"),
    (a_gpu_box(cpus=16), ProblemKind.FEW_CPUS_PER_GPU, "16 CPU cores for 8 GPUs: with all training at once each has 2"),
    (a_gpu_box(cpus=4), ProblemKind.FEW_CPUS_PER_GPU, "not every GPU can train at once"),
    (a_gpu_box(memory_bytes=16 * GIB), ProblemKind.LITTLE_MEMORY, "16.00 GiB of memory for 8 trials at once"),
    (a_laptop(shm_bytes=64 * 2**20), ProblemKind.SMALL_SHARED_MEMORY, "64 MiB for 1 trial at once"),
    (a_laptop(open_files=1024), ProblemKind.FEW_OPEN_FILES, "1,024 files"),
    (
        a_laptop(storage=StorageFacts(location="/data", fault="Read-only file system")),
        ProblemKind.STORAGE_UNWRITABLE,
        "/data cannot be written: Read-only file system",
    ),
    (
        a_laptop(storage=StorageFacts(location="/data", free_bytes=GIB)),
        ProblemKind.STORAGE_NEARLY_FULL,
        "1.00 GiB free",
    ),
    (
        a_laptop(storage=StorageFacts(location="/data", shared=False)),
        ProblemKind.STORAGE_NOT_SHARED,
        "another one here",
    ),
    (a_gpu_box(an_h200(), GpuFacts(index=1, name="NVIDIA A10G")), ProblemKind.GPU_MODELS_DIFFER, "A10G, NVIDIA H200"),
]


@pytest.mark.parametrize(
    ("facts", "kind", "words"), CASES, ids=[f"{kind}-{index}" for index, (_, kind, _) in enumerate(CASES)]
)
def test_one_thing_wrong_is_one_problem_that_says_what_and_what_to_do(
    facts: NodeFacts, kind: ProblemKind, words: str
) -> None:
    (problem,) = problems(facts)
    assert problem.kind is kind
    assert words in problem.what
    assert problem.remedy
    (line,) = problem_lines([problem])
    assert line.startswith("stops a sweep" if kind in STOPPING else "may matter")


def test_a_ulimit_that_may_be_raised_is_told_from_one_that_may_not() -> None:
    (soft,) = problems(a_laptop(open_files=1024, open_files_hard=None))
    (hard,) = problems(a_laptop(open_files=1024, open_files_hard=1024))
    assert soft.remedy == "ulimit -n 65536 before the command"
    assert "hard limit" in hard.remedy


def test_a_node_that_gives_out_more_gpus_than_torch_sees_stops_a_sweep() -> None:
    (problem,) = problems(a_gpu_box(an_h200()), declared_gpus=8)
    assert problem.kind is ProblemKind.RAY_DECLARES_MORE_GPUS
    assert "Ray gives out 8 GPUs, and torch sees 1" in problem.what
    assert problems(a_gpu_box(), declared_gpus=8) == []


def test_a_node_that_does_not_answer_is_named_with_its_reason() -> None:
    answers = [answered(a_laptop()), NodeAnswer(node="far", fault="No module named 'trainables'")]
    (problem,) = problems_of(answers)
    assert (problem.kind, problem.node, problem.stops) == (ProblemKind.NO_ANSWER, "far", True)
    assert "No module named 'trainables'" in problem.what
    assert node_lines(answers[1]) == ["far: no answer"]


def test_nodes_with_different_versions_are_found_and_none_is_blamed() -> None:
    other = a_laptop(node="other", versions=tuple((VERSIONS | {"torch": "2.10.0"}).items()))
    (problem,) = problems_of([answered(a_laptop()), answered(other)])
    assert (problem.kind, problem.node) == (ProblemKind.VERSIONS_DIFFER, None)
    assert "torch: 2.10.0, 2.9.1" in problem.what


def test_what_stops_a_sweep_comes_first() -> None:
    broken = a_laptop(open_files=64, storage=StorageFacts(location="/data", fault="No space left on device"))
    assert [problem.stops for problem in problems(broken)] == [True, False]


def test_every_kind_of_problem_is_judged_by_some_test_here() -> None:
    shown = {kind for _, kind, _ in CASES}
    assert set(ProblemKind) - shown == {
        ProblemKind.NO_ANSWER,
        ProblemKind.RAY_DECLARES_MORE_GPUS,
        ProblemKind.VERSIONS_DIFFER,
    }


def test_equal_gpus_share_a_line() -> None:
    lines = node_lines(answered(a_gpu_box()))
    (gpus,) = [line for line in lines if "H200" in line]
    assert gpus == (
        "  GPU      0–7: NVIDIA H200, compute capability 9.0, 140.00 GiB, native fp32 tf32 fp16 bf16, "
        "torch.compile has what it needs"
    )
    assert "128 cores, 16 for each GPU" in "\n".join(lines)


@given(
    cpus=st.integers(1, 512),
    gpus=st.integers(0, 16),
    memory=st.none() | st.integers(0, 2**42),
    shm=st.none() | st.integers(0, 2**42),
    files=st.none() | st.integers(0, 2**20),
)
def test_any_machine_can_be_judged_and_goes_through_json(
    cpus: int, gpus: int, memory: int | None, shm: int | None, files: int | None
) -> None:
    cards = tuple(an_h200(index) for index in range(gpus))
    facts = a_laptop(
        cpus=cpus, memory_bytes=memory, shm_bytes=shm, open_files=files, torch=replace(CUDA_TORCH, gpus=cards)
    )
    assert node_facts_from_mapping(node_facts_to_mapping(facts)) == facts
    assert not any(problem.stops for problem in problems(facts))
    assert node_lines(answered(facts))
