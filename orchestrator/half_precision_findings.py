"""Findings on fp16 and bf16 that are no faster than fp32, gathered by what causes it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from orchestrator.comparison import MatchedPair, Verdict
from orchestrator.findings import Finding, FindingKind, finding
from orchestrator.half_precision import BatchSizes, Explanation, NoGainCause, explain
from trainables.specs import Precision


def half_precision_findings(pairs: Sequence[MatchedPair]) -> Iterator[Finding]:
    batch_sizes = BatchSizes(pairs)
    for precision in (Precision.BF16, Precision.FP16):
        halved = [
            pair
            for pair in pairs
            if pair.knob == "precision" and (pair.before_value, pair.after_value) == (Precision.FP32, precision)
        ]
        slower = [pair for pair in halved if _is_clearly_slower(pair, among=len(halved))]
        no_faster = [pair for pair in halved if pair.speedup.low <= 1 and pair not in slower]
        for kind, found in (
            (FindingKind.HALF_PRECISION_SLOWER, slower),
            (FindingKind.HALF_PRECISION_NO_GAIN, no_faster),
        ):
            yield from _by_cause(kind, found, batch_sizes, pairs=len(halved))


def _is_clearly_slower(pair: MatchedPair, *, among: int) -> bool:
    return pair.verdict is Verdict.SLOWER and pair.speedup.excludes_one_among(among)


def _by_cause(
    kind: FindingKind, found: Sequence[MatchedPair], batch_sizes: BatchSizes, *, pairs: int
) -> Iterator[Finding]:
    explained: defaultdict[tuple[NoGainCause, ...], list[tuple[MatchedPair, Explanation]]] = defaultdict(list)
    for pair in found:
        explanation = explain(pair, batch_sizes)
        explained[explanation.causes].append((pair, explanation))
    for causes, alike in explained.items():
        alike.sort(key=lambda entry: entry[0].speedup.value)
        typical, explanation = alike[len(alike) // 2]
        yield finding(
            kind,
            [pair.after for pair, _ in alike],
            count=len(alike),
            pairs=pairs,
            knob_value=str(typical.after_value),
            device=typical.after.key.device or "device",
            speedup=typical.speedup.value,
            worst_speedup=alike[0][0].speedup.value,
            speedup_low=typical.speedup.low,
            speedup_high=typical.speedup.high,
            causes=" ".join(causes),
            not_known=", ".join(explanation.not_known),
            **explanation.evidence,
        )
