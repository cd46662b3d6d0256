"""Make the figures and tables of docs/sampler.md, docs/prior.md and docs/classifier.md.

python scripts/make_sampler_docs.py

Tables stand between marks in the pages; all else there is written by hand.
"""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow.parquet as pq

mpl.use("agg")
import matplotlib.pyplot as plt
import torch
from numpy.typing import NDArray

from suffice.files import write_whole
from suffice.reference import reference_log
from suffice.sensing.data import evaluation_set
from suffice.sensing.ddrm import DDRM
from suffice.sensing.noise import measurement_noise
from suffice.sensing.probes import measure, principal_components
from suffice.sensing.sampler import DDRMSampler, DigitClassifier
from suffice.sensing.states import Floats, States
from suffice.sensing.weights import ASSETS, digest, load_classifier, load_prior, read_weights

DOCS = Path(__file__).parents[1] / "docs"
ROUNDS = (2, 4, 6, 8, 12, 16, 20, 24)
SHOWN = (2, 6, 12, 20)
BINS = np.linspace(0, 1, 11)
Doubles = NDArray[np.float64]


def unconditional(count: int) -> Floats:
    """Samples of the prior: votes with nothing measured."""
    rows = np.zeros((1, 784), dtype=np.float32)
    nothing = np.full((count, 1), np.inf, dtype=np.float32)
    zero = np.zeros(count, dtype=np.int64)
    states = States(rows, np.zeros_like(nothing), nothing, 0, zero, zero, np.arange(count))
    return DDRMSampler(DDRM(load_prior()))(states)


def posterior(image: int, probes: int, count: int, sigma_y: float = 0.1) -> Floats:
    """Samples given the first probes of one evaluation image."""
    x = evaluation_set()[0][image]
    rows = principal_components()[0][:probes]
    z = measurement_noise(0, image, np.arange(1, probes + 1))[:, 0]
    values = np.tile(measure(x, rows, sigma_y, z), (count, 1))
    noise = np.full((count, probes), sigma_y, dtype=np.float32)
    same = np.ones(count, dtype=np.int64)
    states = States(rows, values, noise, 0, image * same, probes * same, np.arange(count))
    return DDRMSampler(DDRM(load_prior()))(states)


def grid(images: Floats, columns: int) -> Floats:
    """Images (n, 784) side by side, in one picture."""
    rows = len(images) // columns
    tiles = images[: rows * columns].reshape(rows, columns, 28, 28)
    return tiles.transpose(0, 2, 1, 3).reshape(rows * 28, columns * 28)


def show(axes: Any, picture: Floats) -> None:
    axes.imshow(picture, cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
    axes.set_axis_off()


def save(figure: Any, name: str) -> None:
    (DOCS / "figures").mkdir(exist_ok=True)
    figure.savefig(DOCS / "figures" / name, dpi=110, bbox_inches="tight", metadata={"Software": ""})
    plt.close(figure)


def picture_of_prior(samples: Floats) -> None:
    figure, axes = plt.subplots(figsize=(7, 3.5))
    show(axes, grid(samples[:128], 16))
    save(figure, "prior-samples.png")


def picture_of_posterior(shown: tuple[int, ...] = (0, 1, 2, 3, 4)) -> None:
    images, _ = evaluation_set()
    widths = [1, *[6] * len(SHOWN)]
    figure, axes = plt.subplots(
        1, len(widths), figsize=(11, 2.2), width_ratios=widths, layout="constrained"
    )
    show(axes[0], grid(images[list(shown)], 1))
    axes[0].set_title("truth", fontsize=8)
    for place, probes in zip(axes[1:], SHOWN, strict=True):
        drawn = [posterior(image, probes, 6) for image in shown]
        show(place, grid(np.concatenate(drawn), 6))
        place.set_title(f"{probes} probes", fontsize=8)
    save(figure, "posterior-samples.png")


def histograms(samples: Floats) -> str:
    """The classes that the classifier sees in samples of the prior, and how sure it is."""
    with torch.inference_mode():
        confidence, label = load_classifier()(torch.from_numpy(samples)).softmax(dim=1).max(dim=1)
    counts = np.bincount(label.numpy(), minlength=10)
    sure = confidence.numpy()
    _, truth = evaluation_set()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    left.bar(range(10), counts / len(samples), color="#4477aa")
    left.plot(range(10), np.bincount(truth) / len(truth), "k_", markersize=14, label="digits")
    left.set(xlabel="class", ylabel="share of samples", xticks=range(10))
    left.legend(frameon=False, fontsize=8)
    right.hist(sure, bins=np.linspace(0.2, 1, 33), color="#4477aa", log=True)
    right.set(xlabel="classifier's confidence", ylabel="samples")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, "prior-classes.png")
    return table(
        ["class", *map(str, range(10))],
        [
            ["samples", *map(str, counts)],
            ["share", *(f"{100 * c / len(samples):.1f}%" for c in counts)],
        ],
    ) + (
        f"\n\nThe classifier is at least 90% sure of {(sure >= 0.9).mean():.1%} of the "
        f"{len(samples)} samples and less than 50% sure of {(sure < 0.5).mean():.1%}."
    )


def by_round() -> str:
    """What votes of the reference log are worth, round by round."""
    log = reference_log(32)
    laws, leaders, truth = log.laws(10), log.leaders(), log.truth
    pi = oracle_laws()
    rows = []
    for probes in ROUNDS:
        at = probes - 1
        rows.append(
            [
                str(probes),
                f"{(leaders[:, at] == truth).mean():.3f}",
                f"{(log.votes[:, at] == truth[:, None]).mean():.3f}",
                f"{laws[:, at].max(axis=1).mean():.3f}",
                f"{(pi[:, at].argmax(axis=1) == truth).mean():.3f}",
                f"{pi[np.arange(len(truth)), at, truth].mean():.3f}",
                f"{pi[:, at].max(axis=1).mean():.3f}",
            ]
        )
    heads = ["probes", "leader right", "vote right", "leader's share"]
    return table([*heads, *(f"oracle: {head}" for head in heads[1:])], rows)


def calibration() -> str:
    """DDRM's vote mass of a class against the oracle's, and how often the class is right."""
    log, pi = reference_log(128), oracle_laws()
    mass = log.laws(10)
    leader = log.leaders()
    at = np.arange(len(log.truth))[:, None], np.arange(log.rounds)[None]
    ours, exact = mass[*at, leader].ravel(), pi[*at, leader].ravel()
    right = (leader == log.truth[:, None]).ravel()
    best = pi.argmax(axis=2)
    best_mass, best_right = pi.max(axis=2).ravel(), (best == log.truth[:, None]).ravel()
    figure, (left, middle) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
    left.hist2d(exact, ours, bins=40, range=[[0, 1], [0, 1]], norm="log", cmap="Blues")
    left.set(xlabel="oracle's mass of the leader", ylabel="DDRM's share of votes for it")
    for name, share, hit in (("DDRM", ours, right), ("oracle", best_mass, best_right)):
        centre, rate = binned(share, hit)
        middle.plot(centre, rate, "o-", markersize=4, label=name)
    middle.set(xlabel="mass of the leader", ylabel="leader right", xlim=(0, 1), ylim=(0, 1))
    middle.legend(frameon=False)
    for axes in (left, middle):
        axes.plot([0, 1], [0, 1], color="black", linewidth=0.7)
        axes.set_aspect("equal")
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, "calibration.png")
    rows = []
    for low, high in pairwise(BINS[2:]):
        among = (ours >= low) & ((ours < high) | (high == 1))
        same = (best_mass >= low) & ((best_mass < high) | (high == 1))
        rows.append(
            [
                f"{low:.1f} to {high:.1f}",
                str(among.sum()),
                f"{exact[among].mean():.3f}",
                f"{right[among].mean():.3f}",
                str(same.sum()),
                f"{best_right[same].mean():.3f}",
            ]
        )
    heads = ["leader's mass", "DDRM: states", "oracle's mass there", "right"]
    return table([*heads, "oracle: states", "right"], rows)


def oracle_laws() -> Doubles:
    """The oracle's vote laws of the states of the reference logs, (images, rounds, classes)."""
    with as_file(files("suffice") / "assets" / "oracle-laws.parquet") as path:
        parts = pq.read_table(path)
    laws = parts["pi"].combine_chunks().flatten().to_numpy().astype(float)
    images = len(np.unique(parts["image"].to_numpy()))
    return laws.reshape(images, parts.num_rows // images, -1)


def binned(share: Doubles, hit: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    """The mean share and the rate of hits in each bin that holds 20 or more."""
    place = np.minimum(np.digitize(share, BINS) - 1, len(BINS) - 2)
    bins = [b for b in range(len(BINS) - 1) if (place == b).sum() >= 20]
    centres = np.array([share[place == b].mean() for b in bins])
    return centres, np.array([hit[place == b].mean() for b in bins])


def card(name: str) -> str:
    """What is written in a weights file, and its checksum."""
    path = ASSETS / f"{name}.safetensors"
    _, facts = read_weights(path)
    rows = [
        [key, ", ".join(f"{k} {v}" for k, v in value.items())]
        if isinstance(value, dict)
        else [key, str(value)]
        for key, value in facts.items()
    ]
    return table(
        ["fact", "value"],
        [*rows, ["SHA-256", f"`{digest(path)}`"], ["bytes", f"{path.stat().st_size:,}"]],
    )


def right_on_evaluation() -> str:
    images, labels = evaluation_set()
    wrong = int((DigitClassifier(load_classifier())(images) != labels).sum())
    return f"On the {len(images)} evaluation images {wrong} are wrong."


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fill(page: str, tables: dict[str, str]) -> None:
    """Put each table between its marks."""
    path = DOCS / page
    text = path.read_text()
    for name, content in tables.items():
        mark = f"<!-- made by scripts/make_sampler_docs.py: {name} -->"
        pattern = re.compile(f"({re.escape(mark)}\n).*?(<!-- end -->)", re.DOTALL)
        text, found = pattern.subn(lambda m, c=content: f"{m[1]}{c}\n{m[2]}", text)
        if found != 1:
            raise SystemExit(f"{path}: {found} places for {name}; mark one")
    write_whole(path, text.encode())


def main() -> None:
    samples = unconditional(2000)
    picture_of_prior(samples)
    picture_of_posterior()
    fill("sampler.md", {"rounds": by_round(), "calibration": calibration()})
    fill("prior.md", {"card": card("prior"), "classes": histograms(samples)})
    fill("classifier.md", {"card": card("classifier"), "evaluation": right_on_evaluation()})


if __name__ == "__main__":
    main()
