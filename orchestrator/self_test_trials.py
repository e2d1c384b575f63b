"""The trials of the self-test: small trainings with known delays in loader, step, evaluation and compiler."""

import math
from dataclasses import dataclass

from trainables.specs import CompileMode, MeasurementProtocol, Precision, TrainingConfig, TrialSpec

IMAGE_SECONDS = 0.004
"""Of the slow data set, for each image."""
STEP_SECONDS = 0.1
"""Of the slow model, for each training batch: a hundred times what the rest of its step takes on a machine at rest."""
EVALUATION_SECONDS = 0.3
"""Of the slow model, for each batch of an evaluation."""
COMPILE_SECONDS = 5.0
"""Long beside what compiling the same small model twice differs by."""
VALIDATION_IMAGES = 16
WINDOWS = 8
LEFT_OVER_IMAGES = 3
"""More than fill the last batch: a training leaves them out, so no window may hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTrial:
    """A training whose numbers are known before it runs."""

    name: str
    batch_size: int = 8
    """Small, so that loading a batch takes next to no time beside a slow step."""
    num_workers: int = 0
    compile: CompileMode = CompileMode.OFF
    epochs: int = 1
    steps_per_epoch: int
    image_seconds: float = 0.0
    step_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    compile_seconds: float = 0.0
    diagnosed: bool = False
    """Whether compute and loader are measured each alone."""

    def protocol(self) -> MeasurementProtocol:
        return MeasurementProtocol(epochs=self.epochs, windows=min(WINDOWS, self.whole_windows))

    @property
    def evaluation_batches(self) -> int:
        """Of the whole training."""
        return self.epochs * math.ceil(VALIDATION_IMAGES / self.batch_size)

    @property
    def whole_windows(self) -> int:
        """Of two steps each: a step of the slow model is longer than half of the shortest window."""
        protocol = MeasurementProtocol(epochs=self.epochs)
        return max(0, self.epochs * self.steps_per_epoch - protocol.warmup_steps) // protocol.window_steps

    def spec(self, *, data_account: str, model_account: str) -> TrialSpec:
        """The accounts are files in which data set and model write down what they really slept."""
        return TrialSpec(
            config=TrainingConfig(
                precision=Precision.FP32,
                batch_size=self.batch_size,
                compile=self.compile,
                lr=1e-3,
                num_workers=self.num_workers,
            ),
            model="trainables.known_delays:slow_model",
            model_args={
                "account": model_account,
                "step_seconds": self.step_seconds,
                "evaluation_seconds": self.evaluation_seconds,
                "compile_seconds": self.compile_seconds,
            },
            dataset="trainables.known_delays:slow_data",
            dataset_args={
                "account": data_account,
                "train_images": self.steps_per_epoch * self.batch_size + LEFT_OVER_IMAGES,
                "validation_images": VALIDATION_IMAGES,
                "seconds_per_image": self.image_seconds,
            },
            protocol=self.protocol(),
        )


WARMING_UP = KnownTrial(name="first use of the device", steps_per_epoch=3)
"""Of no account: what a process pays once is paid here."""

SLOW_DATA = tuple(
    KnownTrial(
        name=f"data set: {1000 * IMAGE_SECONDS:g} ms an image, num_workers {workers}",
        batch_size=32,  # so that a step takes next to no time beside loading its batch
        num_workers=workers,
        steps_per_epoch=5 + 2 * workers + 2 * WINDOWS + 1,  # warm-up, what workers load ahead, windows of two batches
        image_seconds=IMAGE_SECONDS,
        diagnosed=True,
    )
    for workers in (0, 1, 2)
)

SLOW_STEP = KnownTrial(
    name=f"model: {1000 * STEP_SECONDS:g} ms a step, {1000 * EVALUATION_SECONDS:g} ms an evaluation batch",
    epochs=3,  # so that evaluations fall between the steps that are timed, and windows go on over them
    steps_per_epoch=9,
    step_seconds=STEP_SECONDS,
    evaluation_seconds=EVALUATION_SECONDS,
    diagnosed=True,
)

COMPILED_ONCE = KnownTrial(
    name="a first compilation",
    compile=CompileMode.DEFAULT,
    steps_per_epoch=1,
)
"""Of no account: what the compiler does once in a process is done afterwards."""

COMPILED = KnownTrial(
    name="compiler: no delay",
    compile=CompileMode.DEFAULT,
    steps_per_epoch=7,
    step_seconds=STEP_SECONDS,
)

SLOW_COMPILE = KnownTrial(
    name=f"compiler: {COMPILE_SECONDS:g} s in the first compiled call",
    compile=CompileMode.DEFAULT,
    steps_per_epoch=13,
    step_seconds=STEP_SECONDS,
    compile_seconds=COMPILE_SECONDS,
)
