"""Two pictures for heavy hitters: a count sketch that fills up, and the descent of a prefix tree."""

from __future__ import annotations

import numpy as np

from drawn.svg import WIDTH, Drawing
from evolvingdp.core import brown, words
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import Algorithm3, FreqOracle, WordTree

USERS = (1_000, 10_000, 100_000)  # whose reports the sketch holds in the three panels
SHARE = 0.2  # of them hold the word that is outlined
FULL = 0.25  # the share of the users at which a cell has its full colour


def count_sketch() -> Drawing:
    """Four rows of eight cells after a thousand, ten thousand and a hundred thousand users."""
    oracle = FreqOracle(MultiplyShift.draw(4, 8, stream(0, "idea", "hashes")), 1.0)
    keys = words.encode(["word", *(f"{first}{second}" for first in "abcdefgh" for second in "abcdefghij")])
    of_word, said = keys[:1], []
    drawing = Drawing("A count sketch fills up", "", 150)
    cells, signs = (told(np.arange(4), of_word) for told in (oracle.hashes.cells, oracle.hashes.signs))
    sketch, held = oracle.empty(), np.zeros(len(keys), dtype=np.int64)
    for panel, users in enumerate(USERS):
        wanted = np.append(int(SHARE * users), np.full(len(keys) - 1, (1 - SHARE) * users / (len(keys) - 1))).astype(
            np.int64
        )
        sketch += oracle.simulate(keys, wanted - held, stream(0, "idea", "reports", users))
        held, left = wanted, 8 + 132 * panel
        shares = oracle.cell_estimates(sketch) / sketch.n_reports
        for (row, column), share in np.ndenumerate(shares):
            kind = "ours" if share > 0 else "other"
            drawing.box(left + 15 * column, 28 + 15 * row, 14, 14, kind, strength=min(1.0, abs(share) / FULL))
        for row, (cell, sign) in enumerate(zip(cells, signs, strict=True)):
            drawing.box(left + 15 * int(cell), 28 + 15 * row, 14, 14, "outline")
            full = abs(shares[row, int(cell)]) > FULL / 2
            place = left + 15 * int(cell) + 7, 39.5 + 15 * row
            drawing.text(*place, "+" if sign > 0 else "−", "on" if full else "strong", at="middle")
        estimate = float(oracle.estimate(sketch, of_word)[0]) / sketch.n_reports
        error = oracle.standard_error(sketch.n_reports) / sketch.n_reports
        drawing.text(left, 18, f"{users:,} users", "strong")
        drawing.text(left, 108, f"{estimate:.2f} ± {error:.2f}")
        said.append(f"after {users:,} users {estimate:.2f} with a standard error of {error:.2f}")
    drawing.text(8, 128, "estimated share of the outlined word", "small")
    drawing.box(262, 119, 11, 11, "ours")
    drawing.text(277, 128, "more +", "small")
    drawing.box(330, 119, 11, 11, "other")
    drawing.text(345, 128, "more −", "small")
    drawing.text(8, 145, f"(truth {SHARE:g})", "small")
    drawing.says = (
        "Three grids of four rows and eight cells. At first noise colours all cells strongly; later only one cell "
        f"in each row stays strong, that of a word which a share of {SHARE:g} of the users hold. Its estimate is "
        f"{'; '.join(said)}."
    )
    return drawing


def prefix_tree() -> Drawing:
    """The nodes that a search over words of three letters asks for, and those that it keeps."""
    tree = WordTree(steps=(1, 1, 1), length=3)
    held = brown.words()
    held = held[held.whole.str.len() == 3].head(40)
    leaves, n_users = tree.encode(held.whole), 1_000_000
    counts = (held["count"] * n_users / held["count"].sum()).astype(int).to_numpy()
    threshold = 30_000
    search = Algorithm3.draw(tree, 4.0, threshold, 64, 1024, stream(0, "idea", "tree", "hashes"))
    sketches = search.simulate_sketches(leaves, counts, stream(0, "idea", "tree", "reports"))
    drawing = Drawing("Descending a prefix tree", "", 216)
    drawing.text((94 + WIDTH - 20) / 2, 16, "every word", at="middle")
    kept, places, asked = tree.root, {b"": (94 + WIDTH - 20) / 2}, []
    for level, sketch in zip(range(tree.depth), sketches, strict=False):  # not the one of whole words
        nodes = tree.children(kept, level)
        oracle, cut = search.oracles[level], threshold * search.shares[level]
        reached = oracle.reaching(oracle.cell_estimates(sketch), sketch.n_reports, tree.keys(nodes), cut)
        above, kept, height = places, nodes[reached], 70.0 + 56 * level
        spots = np.linspace(94, WIDTH - 20, len(kept))
        places = {node.tobytes(): float(spot) for node, spot in zip(kept, spots, strict=True)}
        for node, spot in places.items():
            drawing.line(above[node[:-1]], height - 36, spot, height - 13)
            prefix = tree.decode(np.frombuffer(node, dtype=np.uint8)[None])[0]
            drawing.text(spot, height, prefix, "strong" if level == tree.depth - 1 else "", at="middle")
        drawing.text(2, height - 7, f"{len(nodes)} asked", "small")
        drawing.text(2, height + 7, f"{len(kept)} kept", "small")
        asked.append(len(nodes))
    found = [*map(str, tree.decode(kept))]
    drawing.text(2, 210, f"{sum(asked)} questions instead of {26**3:,}: a rare prefix is never opened", "small")
    drawing.says = (
        f"A tree of letters from top to bottom. Of {asked[0]} first letters some are frequent; only below these "
        f"{asked[1]} pairs of letters are asked for, then {asked[2]} words, of which {len(found)} are kept:"
        f" {', '.join(found)}."
    )
    return drawing
