"""A strategy as a `ray.tune` searcher: every segment one Ray trial."""

from collections.abc import Callable
from typing import Any

from ray.tune.search import Searcher

from orchestrator.coordinator import Coordinator
from orchestrator.strategy import Pause, Segment


class StrategySearcher(Searcher):
    """Asks the coordinator whenever Ray Tune has room. Results do not come this way: see `ray_runner.SweepCallback`."""

    def __init__(self, coordinator: Coordinator, config_of: Callable[[Segment], dict[str, Any]]) -> None:
        super().__init__(metric=None, mode=None)
        self._coordinator = coordinator
        self._config_of = config_of
        self.segments: dict[str, Segment] = {}
        """By Ray's trial id."""

    def suggest(self, trial_id: str) -> Any:  # Ray: a config, None to wait, or the text FINISHED
        proposal = self._coordinator.next()
        if isinstance(proposal, Segment):
            self.segments[trial_id] = proposal
            return self._config_of(proposal)
        return Searcher.FINISHED if proposal is Pause.DONE else None

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The callback has told the coordinator already."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the ledger is the truth, and Tune's own state is never restored."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing, as in `save`."""

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles its searchers for a restoration that never comes
