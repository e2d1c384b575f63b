"""What a trial measured: the frozen types of the parts of its outcome, each born whole."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputMeasurement:
    """Images and seconds of every timed window, born together. Rates and intervals are derived, never stored."""

    window_images: tuple[int, ...]
    window_seconds: tuple[float, ...]
    measured_on: str
    """`training`: windows of the training itself; `copy`: measured on a copy after the last evaluation;
    `resident_batch`: the training step over one batch that stays on the device; `loader`: the loader with no training.
    """

    def __post_init__(self) -> None:
        if len(self.window_images) != len(self.window_seconds) or not self.window_images:
            raise ValueError("a throughput measurement needs one or more windows, each with images and seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurve:
    """One entry per epoch, oldest first; None where there is no such number (never NaN)."""

    accuracy: tuple[float | None, ...] = ()
    """Validation accuracy, a fraction from 0 to 1."""
    validation_loss: tuple[float | None, ...] = ()
    train_loss: tuple[float | None, ...] = ()
    """Mean cross-entropy of the epoch's training samples, in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileMeasurement:
    """What `torch.compile` cost and did."""

    compile_seconds: float | None = None
    """Time of the first training step beyond a typical one: compilation of the training graphs."""
    cache: str | None = None
    """`cold` or `warm`: whether the compiler's on-disk cache had the graphs; None where it did not say."""
    graphs: int | None = None
    """Graphs that were compiled; 0: the compiler took nothing of the model, which ran eagerly."""
    graph_breaks: int | None = None
    """Places in the model's code where compiled code falls back to Python, each counted once."""
    graph_break_reasons: tuple[str, ...] = ()
    recompilations: int | None = None
    recompilations_while_timed: int | None = None
    """Times that the compiler worked after the warm-up, on code that it met for the first time too. The windows that
    they fell into were dropped.
    """
    gave_up: bool | None = None
    """Whether the compiler stopped compiling after too many recompilations: parts of the model ran eagerly."""
    eager_functions: tuple[str, ...] = ()
    """Functions, with their places, that ran eagerly because the compiler could not take them or gave them up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionMeasurement:
    """What really ran."""

    executed_precision: str
    """`fp32`, `tf32`, `fp16` or `bf16`, from the dtype of a real output and the state of the switches."""
    skipped_steps: int | None = None
    """Optimizer steps that the GradScaler left out, each one counted; None without a scaler."""
    final_loss_scale: float | None = None
    loss_scale_by_epoch: tuple[float, ...] = ()
    """The GradScaler's scale at the end of each epoch (or report interval), oldest first; empty without a scaler."""
    emulated: bool | None = None
    """Whether the device has no instructions for this precision and computes it by other ones."""
    tensor_cores: bool | None = None
    """Whether the device has matrix units for this precision; None where that is not known."""
    matmul_precision: str | None = None
    """torch's switch for float32 matrix products: `highest` (IEEE) or `high` (TF32)."""
    convolution_tf32: bool | None = None
    cudnn_benchmark: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisMeasurement:
    """The loop in parts, measured after the last evaluation so that the training is not touched."""

    compute: ThroughputMeasurement | None = None
    """The training step over one batch that stays on the device: no loading, no copy to the device."""
    loader: ThroughputMeasurement | None = None
    """The loader alone, with nothing trained."""
    host_fraction: float | None = None
    """Of the time of the compute-only steps, what the host needed to give them to the device: near 1 the device waits
    for launches. None on a CPU, where the host is the device.
    """
    diagnosis_seconds: float = 0.0
    """What measuring both took, in wall time."""


class DivergenceCause(StrEnum):
    """What the replay of a training that became non-finite showed."""

    PRECISION = "precision"
    """The same steps stay finite in fp32."""
    LOSS_SCALE = "loss_scale"
    """They stay finite in fp32, and in fp16 the GradScaler's scale broke them, not the values themselves."""
    COMPILE = "compile"
    """They stay finite in the same precision without `torch.compile`."""
    TRAINING = "training"
    """fp32 becomes non-finite too: the learning rate, the model, the loss or the loop."""
    DATA = "data"
    """The batch itself holds a value that is not finite."""
    NOT_REPRODUCED = "not_reproduced"
    """The replay in the trial's own precision stayed finite."""
    UNDECIDED = "undecided"
    """It broke in the trial's own precision again, but could not be replayed in fp32."""


WHOLE_MODEL = "model"
"""The name of the model itself, which torch gives none."""


class NonFiniteIn(StrEnum):
    """Which values of a step were the first that were not finite."""

    INPUT = "input"
    """The batch."""
    FORWARD = "forward"
    """A module's output."""
    LOSS = "loss"
    GRADIENT = "gradient"
    WEIGHTS = "weights"
    """After the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceDiagnosis:
    """What the replay of a diverged trial from its last good state found. Steps count from 1."""

    cause: DivergenceCause
    replayed_from_step: int
    """Optimizer steps done at the state that the replay started from."""
    first_nonfinite_step: int | None = None
    first_nonfinite_module: str | None = None
    """Name of the first module whose output, or of the parameter whose gradient or value, was not finite; `model` for
    the whole model, `loss` for the loss; None for a batch.
    """
    nonfinite_in: NonFiniteIn | None = None
    in_evaluation: bool = False
    """The training's steps are finite, and the evaluation after the step is not."""
    nonfinite_images: tuple[int, ...] = ()
    """Of a batch that is not finite: which images of the training set (or validation set, in evaluation), the first
    ten.
    """
    gradient_norm_before: float | None = None
    """2-norm of the unscaled gradient at the last step that was finite throughout."""
    fp32_survives: bool | None = None
    fp32_nonfinite_step: int | None = None
    fp32_nonfinite_module: str | None = None
    replay_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """What else the machine did while the trial trained; None where it could not be asked.

    Looked at between reports. Of a trial that was interrupted, only its last process counts.
    """

    samples: int = 0
    """How often it was looked at."""
    gpu_clock_mhz: float | None = None
    """Median clock of the GPU's multiprocessors; `gpu_clock_mhz_low` is the lowest seen."""
    gpu_clock_mhz_low: float | None = None
    gpu_clock_mhz_max: float | None = None
    """The highest that the card can have."""
    gpu_temperature_celsius: float | None = None
    """Highest seen."""
    gpu_power_watts: float | None = None
    """Mean."""
    gpu_utilization: float | None = None
    """Mean fraction of the time with a kernel running."""
    throttle_reasons: tuple[str, ...] = ()
    """NVML's names of the reasons for a lower clock that were seen, idleness and a user's own setting left out."""
    foreign_gpu_processes: int | None = None
    """Most processes on the GPU at one time that are not this trial's."""
    foreign_cpus: float | None = None
    """Mean number of cores kept busy by processes that are neither this trial's nor the sweep's own Ray."""
    node_cpus: int | None = None
    """Cores of the node."""
    loader_affinity: tuple[int, ...] | None = None
    """Cores that the loader's workers may run on."""
    allocator_retries: int | None = None
    """Times that the GPU's allocator had to give cached memory back before an allocation succeeded."""
