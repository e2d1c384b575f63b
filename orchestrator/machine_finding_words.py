"""The words for what the state of the machine shows, and what to do next."""

from collections.abc import Mapping

from orchestrator.findings import FindingKind

MACHINE_WORDS: Mapping[FindingKind, tuple[str, str]] = {
    FindingKind.THROTTLED: (
        "{trials} trained while the GPU held its clock down ({reasons}): as low as {clock} of {highest}, at "
        "up to {temperature}.",
        "At its power limit (sw_power_cap) a card gives what it can, but another card of the model may give more or "
        "less. For the other reasons cool it or free its power supply, and measure again.",
    ),
    FindingKind.FOREIGN_GPU_PROCESSES: (
        "{trials} shared their GPU with processes that were not theirs, up to {most} at a time.",
        "End those processes (nvidia-smi lists them), and measure again.",
    ),
    FindingKind.CPU_LOAD_BY_OTHERS: (
        "{trials} trained while others kept up to {foreign_cpus} of the node's {node_cpus} cores busy.",
        "End what else runs there, or on a cluster give --exclusive, and measure again.",
    ),
    FindingKind.MORE_WORKERS_THAN_CPUS: (
        "{trials} had more loader workers than cores to run them: up to {num_workers} on {cpus}.",
        "Workers beyond the cores take turns: keep num_workers below the cores, less those that the training needs.",
    ),
    FindingKind.ALLOCATOR_RETRIES: (
        "{trials} came close to the end of the GPU's memory: the allocator gave its cache back and tried again up to "
        "{most} times, which waits for the GPU.",
        "A smaller batch_size may be faster.",
    ),
}
