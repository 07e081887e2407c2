"""Two pictures for continual means: blocks of a stream, and blocks of a user's samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from drawn.svg import WIDTH, Drawing
from evolvingdp.continual_mean import Blocks
from evolvingdp.continual_mean.prefix_sums import Tree

STEPS = 16
READ = 13  # the step whose running sum is marked
ELEMENT = 6  # the element whose blocks are outlined


class _Marked:
    """Draws that can be told apart in a sum: the powers of two."""

    drawn = 0

    def take(self, count: int) -> NDArray[np.int64]:
        self.drawn += count
        return 2 ** np.arange(self.drawn - count, self.drawn, dtype=np.int64)


def reads(tree: Tree, step: int) -> list[tuple[int, int]]:
    """The blocks (first element, last element) whose noise is in the running sum of `step`, as the library adds them up: a
    block is read first where it ends."""
    marked: Any = _Marked()
    totals = tree.all(STEPS, marked).astype(np.int64)
    read = totals[:, None] >> np.arange(marked.drawn) & 1  # (steps, draws)
    ends = sorted(int(read[:, draw].argmax()) + 1 for draw in np.flatnonzero(read[step - 1]))
    return [(previous + 1, end) for previous, end in zip([0, *ends], ends, strict=False)]


def blocks() -> Drawing:
    """Every block that some step reads; those of one step filled, those of one element outlined."""
    tree = Tree(STEPS)
    every = sorted({block for step in range(1, STEPS + 1) for block in reads(tree, step)})
    chosen = reads(tree, READ)
    drawing = Drawing("Which blocks a running sum reads", "", 190)
    wide = (WIDTH - 16) / STEPS
    for first, last in every:
        level = (last - first + 1).bit_length() - 1
        place = 8 + wide * (first - 1) + 1, 104 - 24 * level, wide * (last - first + 1) - 2, 18
        drawing.box(*place, "ours" if (first, last) in chosen else "faint")
        if first <= ELEMENT <= last:
            drawing.box(*place, "outline")
    for step in range(1, STEPS + 1):
        drawing.text(8 + wide * (step - 0.5), 140, str(step), "strong" if step in (READ, ELEMENT) else "small", at="middle")
    sizes = " + ".join(str(last - first + 1) for first, last in chosen)
    n_held = sum(first <= ELEMENT <= last for first, last in every)
    drawing.box(8, 152, 11, 11, "ours")
    drawing.text(24, 162, f"the sum of step {READ} reads {len(chosen)} blocks: {sizes}", "small")
    drawing.box(8, 171, 11, 11, "outline")
    drawing.text(24, 181, f"reading {ELEMENT} is in {n_held} blocks: only their sums change with it", "small")
    drawing.says = (
        f"Blocks of 1, 2, 4, 8 and 16 readings over {STEPS} steps. The running sum of step {READ} reads the blocks "
        f"{' and '.join(f'{first} to {last}' for first, last in chosen)}. Reading {ELEMENT} is in {n_held} blocks."
    )
    return drawing


def user_blocks() -> Drawing:
    """The samples of a user, in blocks that double."""
    settings = Blocks(n_users=100, samples_per_user=16, epsilon=1.0)
    drawing = Drawing("A user's samples in blocks", "", 96)
    wide, first, said = (WIDTH - 16) / settings.samples_per_user, 0, []
    for level, size in enumerate(each.size for each in settings.levels):
        drawing.box(8 + wide * first + 1, 24, wide * size - 2, 26, "ours", strength=0.35)
        drawing.text(8 + wide * (first + size / 2), 66, str(level), "small", at="middle")
        said.append(f"{size} to tree {level}")
        for sample in range(first, first + size):
            drawing.dot(8 + wide * (sample + 0.5), 37, "ours", 3)
        first += size
    drawing.text(8, 16, f"the {first} samples of one user, in the order in which they come", "small")
    drawing.text(8, 88, "the tree that each block goes to: one element a tree and user", "small")
    drawing.says = f"The {first} samples of one user stand in a row and are cut into blocks: {', '.join(said)}."
    return drawing
