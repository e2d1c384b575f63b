"""Windows: what is in them and what is not, to the image and to the tick of a fake clock."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainables.queued_device import QueuedDevice
from trainables.specs import MeasurementProtocol
from trainables.timing import MOST_WINDOWS, DeviceClock, WindowTimer

PROTOCOL = MeasurementProtocol(epochs=1, window_steps=2, window_seconds=1.0)


class FakeDevice(QueuedDevice):
    """Giving it a step takes the host `host_seconds`, whatever its cost."""

    def __init__(self, *, host_seconds: float = 0.0) -> None:
        super().__init__(call_seconds=host_seconds)

    def clock(self) -> DeviceClock:
        return DeviceClock(synchronize=self.synchronize, clock=self.read_clock)


class FakeCpu(FakeDevice):
    """It computes before it returns."""

    def submit(self, seconds: float) -> None:
        self.now += seconds
        self.busy_until = self.now


def take_steps(timer: WindowTimer, device: FakeDevice, seconds: Sequence[float], *, images: int = 64) -> None:
    for cost in seconds:
        device.submit(cost)
        timer.count(images)


def rate(timer: WindowTimer) -> float:
    return sum(timer.window_images) / sum(timer.window_seconds)


def test_work_that_was_only_queued_does_not_count_as_done() -> None:
    """B01: 6,400 images a second are done; a clock that nobody synchronises would see a few milliseconds pass."""
    device = FakeDevice(host_seconds=0.0001)
    timer = WindowTimer(MeasurementProtocol(epochs=1, window_seconds=0.002), device.clock())
    timer.resume()
    take_steps(timer, device, [0.010] * 200)
    timer.pause()
    assert rate(timer) == pytest.approx(6400, rel=0.01)


def test_work_left_over_from_before_is_not_charged_to_the_window() -> None:
    """B01: 20 steps are still queued when the timer starts."""
    device = FakeDevice()
    for _ in range(20):
        device.submit(0.5)
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [0.5] * 4)
    timer.pause()
    assert (timer.window_images, timer.window_seconds) == ([256], [2.0])


def test_the_device_is_waited_for_at_the_ends_of_windows_only() -> None:
    device = FakeDevice(host_seconds=0.01)
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [0.005] * 1000)
    timer.pause()
    assert len(timer.window_images) == 9
    assert device.waits == len(timer.window_images) + 2


def test_a_host_far_ahead_of_the_device_does_not_make_windows_long() -> None:
    """Here the host needs a hundredth of the device's time: by its own clock a window would be 100 times too long."""
    device = FakeDevice(host_seconds=0.001)
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [0.1] * 2000)
    timer.pause()
    assert timer.window_seconds[0] > 90
    assert max(timer.window_seconds[1:]) < 1.5
    assert rate(timer) == pytest.approx(640, rel=0.01)


def test_warm_up_is_left_out_in_images_and_in_seconds_alike() -> None:
    """B02: a first step that compiles for 9 seconds changes nothing."""
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume(uncounted_steps=3)
    take_steps(timer, device, [9.0, 0.5, 0.5])
    assert timer.is_warming_up is False
    take_steps(timer, device, [0.5] * 6)
    timer.pause()
    assert sum(timer.window_images) == 6 * 64
    assert sum(timer.window_seconds) == 3.0
    assert timer.active_seconds == 13.0


def test_evaluation_and_checkpoints_are_outside_however_long_they_take() -> None:
    """B05: 8,000 images in 4 seconds are 2,000 a second, whatever lies between the steps."""
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    for _ in range(2):
        timer.resume()
        take_steps(timer, device, [0.5] * 4, images=1000)
        timer.pause()
        device.submit(3.0)  # evaluation
        device.now += 1.0  # checkpoint
    assert rate(timer) == 2000.0
    assert timer.active_seconds == 4.0


def test_a_window_goes_on_after_a_pause() -> None:
    device = FakeCpu()
    timer = WindowTimer(MeasurementProtocol(epochs=1, window_steps=4, window_seconds=1.0), device.clock())
    for _ in range(2):
        timer.resume()
        take_steps(timer, device, [0.5, 0.5])
        timer.pause()
        device.now += 100.0
    assert (timer.window_images, timer.window_seconds) == ([256], [2.0])


def test_steps_left_out_after_a_pause_take_their_time_with_them() -> None:
    """Loader workers fill their queue in a pause: the first batches after it cost nothing and prove nothing."""
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [0.5])
    timer.pause()
    timer.resume(uncounted_steps=2)
    take_steps(timer, device, [0.1, 0.1, 0.5, 0.5])
    timer.pause()
    assert (timer.window_images, timer.window_seconds) == ([128], [pytest.approx(1.0)])


def test_a_pause_within_the_warm_up_leaves_the_rest_of_it_due() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume(uncounted_steps=3)
    take_steps(timer, device, [5.0])
    timer.pause()
    timer.resume()
    take_steps(timer, device, [5.0, 5.0, 0.5, 0.5])
    timer.pause()
    assert (timer.window_images, timer.window_seconds) == ([128], [1.0])


def test_a_window_needs_its_steps_even_where_one_step_is_long() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [7.0] * 3)
    timer.pause()
    assert (timer.window_images, timer.window_seconds) == ([128], [14.0])


def test_a_training_too_short_for_a_window_has_none() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [0.1] * 5)
    timer.pause()
    assert timer.window_images == []
    assert timer.recent_rate() is None


def test_long_trainings_keep_60_to_120_windows_that_grow() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [0.5] * 10_000)
    timer.pause()
    assert MOST_WINDOWS // 2 <= len(timer.window_images) <= MOST_WINDOWS
    assert set(timer.window_seconds) == {2.0**timer.merges}
    assert rate(timer) == 128.0


def test_a_continued_training_keeps_its_windows_and_their_length() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock(), images=(512, 512), seconds=(4.0, 4.0), merges=2)
    timer.resume()
    take_steps(timer, device, [0.5] * 15)
    timer.pause()
    assert timer.window_images == [512, 512, 512]
    assert timer.window_seconds == [4.0, 4.0, 4.0]


def test_the_recent_rate_is_that_of_the_last_windows() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    take_steps(timer, device, [0.5] * 20 + [1.0] * 10)
    assert timer.recent_rate() == 64.0


def test_the_active_time_is_known_while_steps_run() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock())
    timer.resume()
    device.now += 2.5
    assert timer.active_seconds == 2.5


Part = tuple[int, list[int]]
"""Steps to leave out, and the ticks that each step of the part takes."""


def in_window(counted: list[int], timer: WindowTimer, images: int) -> int:
    """Steps of the window that has not ended."""
    return len(counted) - sum(timer.window_images) // images


PARTS = st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(1, 30), max_size=60)), max_size=12)


@given(parts=PARTS, images=st.integers(1, 512), multiple=st.integers(1, 4))
def test_no_image_and_no_second_is_lost_or_counted_twice(parts: list[Part], images: int, multiple: int) -> None:
    """The windows hold whole steps in their order, and for those steps exactly the time they took."""
    device = FakeCpu()
    protocol = MeasurementProtocol(epochs=1, window_steps=2, window_seconds=20.0)
    timer = WindowTimer(protocol, device.clock(), step_multiple=multiple)
    counted: list[int] = []
    due = 0
    for uncounted, ticks in parts:
        if uncounted and in_window(counted, timer, images) % multiple:
            del counted[-in_window(counted, timer, images) :]
        timer.resume(uncounted_steps=uncounted)
        due = max(due, uncounted)
        counted += ticks[due:]
        due = max(0, due - len(ticks))
        take_steps(timer, device, ticks, images=images)
        timer.pause()
        device.now += 1000.0
    steps = 0
    for window_images, seconds in zip(timer.window_images, timer.window_seconds, strict=True):
        taken = window_images // images
        assert window_images == taken * images
        assert seconds == sum(counted[steps : steps + taken])
        assert taken >= 2
        assert taken % multiple == 0
        assert seconds >= 20.0
        steps += taken
    whole = len(counted) - (len(counted) - steps) % multiple
    assert whole - steps < 2 or sum(counted[steps:whole]) < 20.0 * 2**timer.merges


def bunches(device: FakeCpu, timer: WindowTimer, *, workers: int, steps: int) -> None:
    """`workers` batches arrive together every 0.3 seconds, and a step takes next to nothing."""
    for step in range(steps):
        device.submit(0.3 if step % workers == 0 else 0.0)
        timer.count(10)


def test_windows_of_whole_bunches_show_the_rate_of_a_loader_that_delivers_in_bunches() -> None:
    """3 workers that need 0.3 seconds for a batch of 10 each feed 100 images a second."""
    device = FakeCpu()
    timer = WindowTimer(MeasurementProtocol(epochs=1), device.clock(), step_multiple=3)
    timer.resume(uncounted_steps=3)
    bunches(device, timer, workers=3, steps=60)
    timer.pause()
    assert timer.window_images == [30] * 19
    assert timer.window_seconds == pytest.approx([0.3] * 19)


def test_windows_that_cut_bunches_would_not() -> None:
    """The fault that the multiple is for."""
    device = FakeCpu()
    timer = WindowTimer(MeasurementProtocol(epochs=1), device.clock())
    timer.resume(uncounted_steps=3)
    bunches(device, timer, workers=3, steps=60)
    timer.pause()
    assert sorted(set(timer.window_images)) != [30]


@pytest.mark.parametrize(("steps", "multiple", "fewest"), [(2, 1, 2), (2, 3, 3), (3, 2, 4), (2, 8, 8)])
def test_a_window_holds_its_fewest_steps_and_a_multiple(steps: int, multiple: int, fewest: int) -> None:
    device = FakeCpu()
    protocol = MeasurementProtocol(epochs=1, window_steps=steps, window_seconds=0.5)
    timer = WindowTimer(protocol, device.clock(), step_multiple=multiple)
    timer.resume()
    take_steps(timer, device, [1.0] * fewest, images=1)
    timer.pause()
    assert timer.window_images == [fewest]


def test_a_bunch_that_a_pause_broke_is_in_no_window_once_steps_are_left_out() -> None:
    device = FakeCpu()
    timer = WindowTimer(PROTOCOL, device.clock(), step_multiple=3)
    timer.resume()
    take_steps(timer, device, [1.0, 0.0, 0.0, 1.0])
    timer.pause()
    timer.resume(uncounted_steps=1)
    take_steps(timer, device, [0.0, 2.0, 0.0, 0.0])
    timer.pause()
    assert (timer.window_images, timer.window_seconds) == ([192, 192], [1.0, 2.0])


def test_a_known_step_time_keeps_the_first_window_short_where_the_host_is_far_ahead() -> None:
    device = FakeDevice(host_seconds=0.001)
    timer = WindowTimer(PROTOCOL, device.clock(), step_seconds=0.1)
    timer.resume()
    take_steps(timer, device, [0.1] * 100)
    timer.pause()
    assert max(timer.window_seconds) < 1.5


def test_a_window_in_which_the_compiler_worked_is_dropped_whole() -> None:
    """B14: neither its images nor its seconds are in a rate; what came before and after is."""
    device = FakeCpu()
    compiled = 0
    timer = WindowTimer(PROTOCOL, device.clock(), disturbances=lambda: compiled)
    compiled = 3  # in the set-up
    timer.resume(uncounted_steps=1)
    compiled = 4  # in the warm-up
    take_steps(timer, device, [9.0, 0.5, 0.5])
    compiled = 6
    take_steps(timer, device, [7.0, 0.5])
    timer.pause()
    compiled = 7  # in an evaluation
    timer.resume()
    take_steps(timer, device, [0.5, 0.5])
    timer.pause()
    assert (timer.window_images, timer.window_seconds) == ([128, 128], [1.0, 1.0])
    assert timer.disturbances_while_timed == 2


def test_a_disturbance_before_a_pause_spoils_the_window_that_goes_on_after_it() -> None:
    device = FakeCpu()
    compiled = 0
    timer = WindowTimer(PROTOCOL, device.clock(), disturbances=lambda: compiled)
    timer.resume()
    compiled = 1
    take_steps(timer, device, [0.5])
    timer.pause()
    timer.resume()
    take_steps(timer, device, [0.5, 0.5, 0.5])
    timer.pause()
    assert (timer.window_images, timer.window_seconds) == ([128], [1.0])
