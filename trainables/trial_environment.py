"""A trial and its surroundings: where it runs, and what it reports while it goes on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnvironment:
    """Where a trial runs, which is no part of what it is asked."""

    device: str | None = None
    """As torch takes it; None: the current accelerator, else the CPU."""
    cpu_threads: int | None = None
    """Compute threads; None leaves the process's own number."""
    node: str | None = None
    checkpoint_every_seconds: float = 30.0
    cold_compile: bool = False
    """Whether the compiler starts with an empty cache, so that what compiling costs is a cold figure."""
    diagnose: bool = True
    """Whether compute and loader are measured each alone after the training."""
    sweep_pids: tuple[int, ...] = ()
    """Roots of process trees on this node that belong to the sweep: what they use is not the work of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A report of a trial that goes on."""

    epoch: float
    """Intervals done, with the part done of the next."""
    epochs: int
    """Intervals of the whole training."""
    step: int
    images_per_second: float | None
    """Of the last few windows."""
    accuracy: float | None
    """After the last whole interval."""
    train_loss: float | None
