"""The one JSON document that `--json` prints: a report as plain values, fractions and seconds, null where unknown."""

from typing import Any

from orchestrator.answer import Answer, RunReport
from orchestrator.answer_words import answer_sentences, nothing_ranked
from orchestrator.bottleneck import runs_rates
from orchestrator.finding_words import finding_words
from orchestrator.knob_effects import KnobEffect
from orchestrator.knob_interactions import Interaction
from orchestrator.ranking import Ranking, Standing
from orchestrator.statistics import Ratio
from trainables.specs import TrialSpec, config_to_mapping


def result_document(report: RunReport) -> dict[str, Any]:
    """Strict JSON carries it; what is there is what the other reports show, without a cap."""
    return {
        "answer": [sentence for answer in report.answers for sentence in answer_sentences(answer)]
        or [nothing_ranked(report)],
        "winner": _winner(report.answers[0]) if report.answers else None,
        "rank_by": report.rank_by.value,
        "accuracy_tolerance": report.accuracy_tolerance,
        "statuses": {status.value: count for status, count in report.status_counts.items()},
        "rankings": [_ranking(ranking) for ranking in report.rankings],
        "not_ranked": [
            {
                **_trial(entry.result.outcome.spec, entry.result.trial_id),
                "status": entry.result.outcome.status.value,
                "reason": entry.reason,
            }
            for entry in report.not_ranked
        ],
        "not_run": [_trial(spec, spec.trial_id) for spec in report.not_run],
        "knob_effects": [_effect(effect) for effect in report.effects],
        "interactions": [_interaction(found) for found in report.interactions],
        "findings": [
            {
                "kind": finding.kind.value,
                "evidence": dict(finding.evidence),
                "sentence": finding_words(finding).sentence,
                "advice": finding_words(finding).advice or None,
                "trial_ids": [result.trial_id for result in finding.results],
            }
            for finding in report.findings
        ],
    }


def _winner(answer: Answer) -> dict[str, Any]:
    return {
        **_standing(answer.winner),
        "label": answer.winner.results[0].outcome.spec.label,
        "tied_with": len(answer.tied),
        "is_recommended": not answer.winner.learned_nothing,
    }


def _ranking(ranking: Ranking) -> dict[str, Any]:
    key = ranking.key
    return {
        "device": key.device,
        "torch_version": key.torch_version,
        "cuda_version": key.cuda_version,
        "cpu_threads": key.cpu_threads,
        "model": key.task.model,
        "dataset": key.task.dataset,
        "epochs": key.task.protocol.epochs,
        "max_steps": key.task.protocol.max_steps,
        "baseline": ranking.baseline.text if ranking.baseline else None,
        "best_accuracy": ranking.best_accuracy,
        "accuracy_margin": ranking.accuracy_margin,
        "between_process_sd": ranking.between.sd,
        "configurations": [_standing(standing) for standing in ranking.standings],
    }


def _standing(standing: Standing) -> dict[str, Any]:
    rate, loop = standing.rate, runs_rates([result.loop for result in standing.results])
    return {
        "rank": standing.rank,
        "trial_id": standing.results[0].trial_id,
        "runs": len(standing.results),
        "config": config_to_mapping(standing.config),
        "images_per_second": rate.images_per_second if rate else None,
        "images_per_second_low": rate.low if rate else None,
        "images_per_second_high": rate.high if rate else None,
        "compute_images_per_second": loop.compute_images_per_second,
        "loader_images_per_second": loop.loader_images_per_second,
        "data_wait_fraction": loop.data_wait_fraction,
        "bottleneck": loop.bottleneck.value if loop.bottleneck else None,
        "accuracy": standing.accuracy,
        "accuracy_sampling_error": standing.sampling_error,
        "on_pareto_front": standing.on_pareto_front,
        "learned_nothing": standing.learned_nothing,
        "baseline": standing.baseline.missing.value if standing.baseline.missing else "matched",
        "speedup": _ratio(standing.baseline.speedup),
        "accuracy_change": standing.baseline.accuracy_change,
        "accuracy_noise": standing.baseline.accuracy_noise,
    }


def _effect(effect: KnobEffect) -> dict[str, Any]:
    return {
        "device": effect.key.device,
        "knob": effect.knob,
        "before": effect.before_value,
        "after": effect.after_value,
        "pairs": len(effect.pairs),
        "data_bound_pairs": effect.data_bound,
        "speedup": _ratio(effect.speedup),
        "lowest_speedup": effect.lowest,
        "highest_speedup": effect.highest,
        "accuracy_change": effect.accuracy_change,
        "accuracy_noise": effect.accuracy_noise,
        "verdict": effect.verdict.value,
    }


def _interaction(found: Interaction) -> dict[str, Any]:
    threshold = found.threshold
    return {
        "device": found.effect.key.device,
        "knob": found.effect.knob,
        "before": found.effect.before_value,
        "after": found.effect.after_value,
        "by": found.by,
        "levels": [
            {"value": level.value, "pairs": level.pairs, "speedup": _ratio(level.speedup)}
            for level in (found.first, found.second)
        ],
        "contrast": _ratio(found.contrast),
        "contrasts": found.contrasts,
        "threshold": {"value": threshold.value, "upwards": threshold.upwards} if threshold else None,
    }


def _ratio(ratio: Ratio | None) -> dict[str, float] | None:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high} if ratio else None


def _trial(spec: TrialSpec, trial_id: str) -> dict[str, Any]:
    return {"trial_id": trial_id, "replicate": spec.replicate, "label": spec.label}
