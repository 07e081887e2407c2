"""The picture of THRESH: which change is seen when."""

from __future__ import annotations

from drawn.svg import WIDTH, Drawing
from evolvingdp.evolving import Thresh

CHANGES = (0.47, 0.32, 0.22)  # of a user's mean, since the last update in epoch 1


def thresholds() -> Drawing:
    """The threshold of each of 32 epochs, and the first epoch in which a change of each size is above it."""
    thresh = Thresh.tuned(10**9, 32, 10_000, 1.0, changes=1)
    heights: dict[int, float] = {epoch: thresh.threshold(epoch) for epoch in range(2, thresh.horizon + 1)}
    drawing = Drawing("Which change is caught when", "", 228)
    top = 1.12 * max(heights.values())
    wide: float = (WIDTH - 44) / (thresh.horizon - 1)

    def x(epoch: int) -> float:
        return 34 + wide * (epoch - 1)

    def y(height: float) -> float:
        return 176 - 160 * height / top

    drawing.line(x(1), y(0), x(thresh.horizon) + 6, y(0), "axis")
    for epoch, height in heights.items():
        drawing.box(x(epoch) - 3.5, y(height), 7, y(0) - y(height), "faint")
    for epoch in (1, *(2**power for power in range(1, thresh.levels + 1))):
        drawing.text(x(epoch), y(0) + 15, str(epoch), "small", at="middle")
    said = []
    for change in CHANGES:
        caught = next((epoch for epoch, height in heights.items() if change > height), None)
        end = x(caught or thresh.horizon)
        drawing.line(x(1), y(change), end, y(change), "ours thick")
        if caught:
            drawing.dot(end, y(change), "ours", 5)
            drawing.text(end + 8, y(change) + 4, "votes yes", "small halo")
        drawing.text(x(1) - 4, y(change) + 4, f"{change:g}", "small", at="end")
        said.append(f"a change by {change:g} in epoch {caught}" if caught else f"a change by {change:g} never")
    drawing.text(WIDTH - 4, y(0) + 30, "epoch", "small", at="end")
    drawing.text(2, y(0) + 30, "up: how far a user's mean has moved; bars: thresholds", "small")
    drawing.text(2, y(0) + 46, f"{thresh.n_users:,} users, {thresh.epoch_length:,} bits an epoch, any ε", "small")
    drawing.says = (
        f"Bars for {thresh.horizon} epochs: every second one is highest, every fourth lower, and so on, down to "
        f"epoch {thresh.horizon}. Lines show what is caught first: {', '.join(said)}."
    )
    return drawing
