"""The picture of ThresholdMonitor: counters of users who are in three groups each, one of each kind, as in Example 1.4."""

from __future__ import annotations

import numpy as np

from drawn.svg import Drawing
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import ThresholdMonitorEvolving, calibrate
from evolvingdp.sparse_vector.streams.example import ShiftingStream

KINDS = {"A": 4, "B": 6, "C": 12}  # users of a group
USERS, COPIES, REPORTS = 12, 1_000, 3  # a row of the picture stands for so many users


def counters() -> Drawing:
    """The counter of each of twelve users after each event, and where it dies."""
    events = ShiftingStream.make(USERS, KINDS, stream(0, "idea", "events"), horizon=12, n_elements=64)
    calibration = calibrate(1.0, 1e-6, REPORTS)
    monitor = ThresholdMonitorEvolving.calibrated(calibration, threshold=2 * COPIES)
    state, said = monitor.start(USERS * COPIES), []
    high, wide, left, top = 15, 54, 66, 30
    drawing = Drawing("Counters that die", "", top + high * USERS + 46)
    for place in range(events.n_events):
        x = left + wide * place
        members = np.isin(np.arange(USERS), events.members(place))
        before = state.active[::COPIES]
        query = np.repeat(members, COPIES)
        state, above = monitor.step(state, query, lambda held: held, stream(0, "idea", "noise", place))
        kind = list(KINDS)[events.family[place]]
        drawing.text(x + wide / 2, 14, kind, "strong", at="middle")
        drawing.text(x + wide / 2, 26, "yes" if above else "no", "small", at="middle")
        for user in range(USERS):
            y = top + high * user
            if before[user]:
                drawing.box(x + 1, y + 1, wide - 2, high - 2, "ours" if members[user] else "faint")
            count, gone = int(state.counted[user * COPIES]), before[user] and not state.active[user * COPIES]
            if before[user]:
                drawing.text(
                    x + wide / 2, y + 12, "✕" if gone else str(count), "on" if members[user] else "small", at="middle"
                )
        said.append(f"{kind} {'yes' if above else 'no'}, {int((~state.active[::COPIES]).sum())} gone")
    for user in range(USERS):
        drawing.text(left - 8, top + high * user + 12, f"user {user + 1}", "small", at="end")
    end = top + high * USERS
    drawing.box(8, end + 10, 11, 11, "ours")
    drawing.text(24, end + 20, "in the group that was found: the counter grows", "small")
    drawing.text(24, end + 37, f"✕ the counter is {REPORTS}: deleted, and not counted any more", "small")
    drawing.says = (
        f"A grid: {USERS} users, a column for each event. Every user is in one group of each kind A, B and C. A counter "
        f"grows by one with each group of the user that is found, and at {REPORTS} the user is deleted. "
        f"Events in turn: {'; '.join(said)}."
    )
    return drawing
