"""One report that has something of everything, for the tests that compare a rendered report whole."""

from orchestrator.answer import RunReport, build_report
from tests.built_outcomes import completed, config, ended, parts, spec
from trainables.outcomes import TrialOutcome

HOSTILE = "bad [red]label[/red]\n<script>alert('1')</script> | **x** & \x1b[2J_y_ `z`"
"""A reason as people's code may write it: markup of rich, HTML and Markdown, a new line, and an escape sequence."""


def outcomes() -> list[TrialOutcome]:
    return [
        completed(spec(config("fp32", 64)), rate=1000.0, accuracy=0.975, diagnosis=parts(1040.0, 26_000.0)),
        completed(spec(config("bf16", 64)), rate=1500.0, accuracy=0.972),
        completed(
            spec(config("bf16", 64, num_workers=2)), rate=1480.0, accuracy=0.972, diagnosis=parts(1600.0, 1500.0)
        ),
        completed(spec(config("bf16", 64, "default")), rate=600.0, accuracy=0.972),
        completed(spec(config("fp32", 64, lr=0.1)), rate=1000.0, accuracy=0.1, loss=2.31),
        ended("out_of_memory", "out of memory at batch 4096", spec(config("bf16", 4096))),
        ended("failed", HOSTILE, spec(config("fp16", 64))),
    ]


def report() -> RunReport:
    not_run = [spec(config("fp32", 64, lr=lr)) for lr in (1e-4, 2e-4, 3e-4, 4e-4)]
    return build_report(outcomes(), not_run=not_run, environment={"ray": "2.60.0", "note": HOSTILE})
