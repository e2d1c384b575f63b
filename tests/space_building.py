"""Space files for tests: a whole one as a mapping, changed where a test wants it, and random ones."""

from typing import Any

from hypothesis import strategies as st

from trainables.yaml_reader import format_yaml

MAIN = {"precision": "fp32", "batch_size": 64, "compile": False, "lr": 1e-3, "num_workers": 0}


def space_text(*, knobs: dict[str, Any] | None = None, **keys: Any) -> str:
    """A space of one configuration; `knobs` go over its knobs, and `keys` over its other keys (None leaves one out)."""
    whole = {"model": "digits_cnn", "dataset": "digits", "epochs": 2, "knobs": {**MAIN, **(knobs or {})}, **keys}
    return format_yaml({key: value for key, value in whole.items() if value is not None})


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "precision": st.sampled_from(["fp32", "tf32", "fp16", "bf16"]),
    "batch_size": st.integers(1, 4096),
    "compile": st.sampled_from([True, False, "off", "default", "reduce-overhead", "max-autotune"]),
    "lr": st.floats(1e-6, 10, allow_subnormal=False),
    "num_workers": st.integers(0, 16),
    "weight_decay": st.floats(0, 1),
    "optimizer": st.sampled_from(["adamw", "sgd"]),
    "gradient_clip_norm": st.none() | st.floats(0.1, 10),
    "channels_last": st.booleans(),
    "prefetch_factor": st.integers(1, 8),
    "persistent_workers": st.booleans(),
}
"""Right values of every knob."""

configurations = st.fixed_dictionaries(
    {name: VALUES[name] for name in MAIN}, optional={name: VALUES[name] for name in VALUES if name not in MAIN}
)

grids = st.fixed_dictionaries(
    {name: VALUES[name] | st.lists(VALUES[name], min_size=1, max_size=2) for name in MAIN},
    optional={
        name: VALUES[name] | st.lists(VALUES[name], min_size=1, max_size=2) for name in VALUES if name not in MAIN
    },
)

ranges = st.tuples(st.floats(1e-5, 1e-2), st.floats(1e-1, 1)).map(list)

distributions = st.fixed_dictionaries(
    {
        "precision": VALUES["precision"] | st.lists(VALUES["precision"], min_size=1, max_size=3),
        "batch_size": st.fixed_dictionaries({"randint": st.just([1, 512])}),
        "compile": st.fixed_dictionaries({"choice": st.lists(VALUES["compile"], min_size=1, max_size=3)}),
        "lr": st.fixed_dictionaries({"loguniform": ranges}),
        "num_workers": VALUES["num_workers"],
    },
    optional={"weight_decay": st.fixed_dictionaries({"uniform": ranges})},
)

# Some leave out everything of some grids; none leaves out a draw of the distributions above.
constraint_lists = st.lists(
    st.sampled_from(
        ["batch_size < 4000", "precision != 'tf32' or batch_size < 2000", "not (compile == 'off' and lr > 9)"]
    ),
    max_size=2,
)
