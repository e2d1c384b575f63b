"""The answer in sentences: which configuration to use, how much faster it is, and what it costs in accuracy."""

from collections.abc import Sequence

from orchestrator.answer import Answer, FasterByChance, RunReport
from orchestrator.baseline import AgainstBaseline, NoBaseline
from orchestrator.baseline_choice import EAGER_FP32, Baseline
from orchestrator.compile_payback import Payback
from orchestrator.ranking import RankBy, Ranking, Standing
from orchestrator.results import ComparisonKey
from orchestrator.statistics import Ratio
from orchestrator.wording import (
    baseline_name,
    baseline_words,
    configuration,
    interval,
    number,
    one_line,
    percent,
    plural,
    points,
    rate,
    ratio,
    seconds,
    signed_points,
)

MOST_TIED = 3
"""Tied configurations that are named; of more, their number is given."""


def answer_sentences(answer: Answer) -> list[str]:
    winner = answer.winner
    if winner.learned_nothing:
        return ["No configuration learned anything: every accuracy is that of guessing, so none is recommended."]
    sentences = [f"{configuration(winner.config)}: {'; '.join(_merits(winner, answer.ranking))}."]
    if answer.ranking.baseline is not None:
        sentences += _baseline_sentences(winner.baseline, answer.ranking.baseline)
    if answer.payback is not None:
        sentences.append(_payback(answer.payback))
    if answer.tied:
        sentences.append(_tied(answer))
    elif winner.baseline.missing is NoBaseline.IS_BASELINE and answer.rival is not None:
        sentences.append(_rival(answer, answer.rival))
    if answer.faster is not None:
        sentences.append(_faster(answer.faster))
    return sentences


def nothing_ranked(report: RunReport) -> str:
    """What a report without a single ranked trial says instead of an answer."""
    if not report.results:
        return "No trial has finished, so there is nothing to rank."
    statuses = ", ".join(f"{count:,} {status.value}" for status, count in report.status_counts.items())
    return f"No configuration can be ranked: of {plural(len(report.results), 'trial')} none qualifies ({statuses})."


def key_words(key: ComparisonKey) -> str:
    """What all trials of one ranking share: `cpu, torch 2.14.1, 2 threads, digits_cnn on digits, 20 epochs`."""
    task, protocol = key.task, key.task.protocol
    parts = [
        key.device or "no device",
        f"torch {key.torch_version}" if key.torch_version else None,
        f"CUDA {key.cuda_version}" if key.cuda_version else None,
        plural(key.cpu_threads, "thread") if key.cpu_threads else None,
        f"{task.model} on {task.dataset}",
        plural(protocol.epochs, "epoch") if protocol.epochs else None,
        plural(protocol.max_steps, "step") if protocol.max_steps else None,
    ]
    return one_line(", ".join(part for part in parts if part))


def method_sentences(report: RunReport, ranking: Ranking) -> list[str]:
    """How the numbers of a ranking came about, and what decides its order."""
    between = ranking.between
    source = (
        f"the default of 2 % and {plural(between.repeats, 'repeat')}, trials that differ in lr or seed alone"
        if between.repeats
        else "the default"
    )
    sentences = [
        "images/s is the median of the timed windows of training, end to end; its 95 % interval includes the "
        f"{percent(between.sd)} by which processes differ ({source})."
    ]
    tie = "an equal rank is a tie: the 95 % interval of the ratio to the fastest of that rank contains 1"
    if not ranking.scored:
        sentences.append(f"The data set is not scored, so images/s alone ranks; {tie}.")
    elif report.rank_by is RankBy.FASTEST_ACCURATE and ranking.best_accuracy is not None:
        sentences.append(
            f"Ranked by images/s among those within {points(ranking.accuracy_margin)} of the best accuracy "
            f"({percent(ranking.best_accuracy, 2)}), then the rest by accuracy; {tie}."
        )
    else:
        sentences.append(f"Ranked by {report.rank_by.value}; {tie}.")
    if ranking.baseline is not None and any(standing.baseline.speedup for standing in ranking.standings):
        sentences.append(
            f"A speed-up is over the same configuration in {baseline_words(ranking.baseline)}, with the same seed; "
            "~ says that its 95 % interval contains 1."
        )
    return sentences


def _speed_words(speedup: Ratio, baseline: Baseline) -> str:
    spread = interval(speedup.low, speedup.high)
    doubt = ", no clear difference" if speedup.is_tie else ""
    return f"{ratio(speedup.value)} the {baseline_name(baseline)} [{spread}]{doubt}"


def _merits(standing: Standing, ranking: Ranking) -> list[str]:
    merits = []
    if ranking.baseline is not None and standing.baseline.missing is NoBaseline.IS_BASELINE:
        merits.append(f"the {baseline_name(ranking.baseline)} itself")
    elif ranking.baseline is not None and standing.baseline.speedup is not None:
        merits.append(_speed_words(standing.baseline.speedup, ranking.baseline))
    if standing.rate is not None:
        merits.append(f"{rate(standing.rate.images_per_second)} images/s")
    if standing.accuracy is not None:
        merits.append(_accuracy(standing, standing.accuracy))
    elif not ranking.scored:
        merits.append("accuracy is not scored on this data set")
    if len(standing.results) > 1:
        merits.append(f"over {len(standing.results)} runs")
    return merits


def _accuracy(standing: Standing, accuracy: float) -> str:
    change, noise = standing.baseline.accuracy_change, standing.baseline.accuracy_noise
    words = f"accuracy {percent(accuracy)}"
    if change is None:
        return f"{words} (±{points(standing.sampling_error)})" if standing.sampling_error else words
    if noise is None:
        return f"{words} ({signed_points(change)})"
    if abs(change) > noise:
        return f"{words} ({signed_points(change)}, more than the ±{points(noise)} that chance gives)"
    return f"{words} ({signed_points(change)}, within the ±{points(noise)} that chance gives)"


def _baseline_sentences(found: AgainstBaseline, baseline: Baseline) -> Sequence[str]:
    words = baseline_words(baseline)
    if found.missing is NoBaseline.NOT_RUN:
        choice = "auto" if baseline == EAGER_FP32 else baseline.text
        return [f"No twin of it in {words} was run, so no speed-up is given; --baseline {choice} adds what is missing."]
    if found.missing is NoBaseline.NOT_COMPLETED:
        status = found.twins[0].outcome.status.value
        return [f"Its twin in {words} cannot be compared to (it ended as {status}), so no speed-up is given."]
    return []


def _payback(earned: Payback) -> str:
    after = f"{earned.images:,.0f} images"
    if earned.epochs is not None:
        after = f"{number(earned.epochs)} epochs ({after})"
    return f"Compiling it took {seconds(earned.compile_seconds)}, which it has earned back after {after}."


def _tied(answer: Answer) -> str:
    count = len(answer.tied) + 1
    words = f"{count:,} configurations are tied for the first place, since their speeds cannot be told apart"
    if len(answer.tied) > MOST_TIED:
        return f"{words}; the table has them all with rank 1."
    return f"{words}: this one; {'; '.join(configuration(other.config) for other in answer.tied)}."


def _faster(faster: FasterByChance) -> str:
    return (
        f"But {configuration(faster.standing.config)} is {number(faster.speed.value)}× as fast "
        f"[{interval(faster.speed.low, faster.speed.high)}], and only {points(-faster.accuracy_change)} less accurate, "
        f"within the ±{points(faster.accuracy_noise)} that chance gives: more seeds (--repeats) or more validation "
        "images would decide between them."
    )


def _rival(answer: Answer, rival: Standing) -> str:
    words = f"Its nearest rival is {configuration(rival.config)}"
    if answer.rival_speed is not None:
        speed = answer.rival_speed
        words += f": {number(speed.value)}× its speed [{interval(speed.low, speed.high)}]"
    return f"{words}, accuracy {percent(rival.accuracy)}." if rival.accuracy is not None else f"{words}."
