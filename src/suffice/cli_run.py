"""The verbs that run: log, sense, replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from suffice import rules
from suffice.cli_show import json_option, print_json, print_pairs, print_table, required
from suffice.errors import BadInput, RunFailed
from suffice.progress import Progress
from suffice.rule import Rule
from suffice.rule_files import load_rules
from suffice.runs.shards import PROBES, SAMPLERS, RunConfig

__all__ = ["log", "replay", "sense"]

MEANS = ("accuracy", "declared", "rounds", "samples")


def _options(*options: Callable[..., Any]) -> Callable[..., Any]:
    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            verb = option(verb)
        return verb

    return add


def _option(name: str, field: str, text: str, **how: Any) -> Callable[..., Any]:
    """An option that is a field of the run's config, with its default."""
    default = RunConfig.__dataclass_fields__[field].default
    return click.option(name, field, default=default, show_default=True, help=text, **how)


CONFIG = _options(
    required("--images", int, "How many evaluation images, from the first."),
    _option("--rounds", "rounds", "Rounds of sensing: the budget."),
    _option("--sigma-y", "sigma_y", "Standard deviation of a measurement."),
    _option("--seed", "seed", "Seed of all random numbers."),
    _option("--first-draw", "first_draw", "Number of a pool's first draw; another: other votes."),
    _option("--probes", "probes", "Which directions to measure.", type=click.Choice(PROBES)),
    _option("--prefix", "prefix", "Samples of a round that adaptive probes look at."),
    _option("--sampler", "sampler", "What draws the samples.", type=click.Choice(SAMPLERS)),
    _option("--steps", "steps", "Steps of DDRM."),
    _option("--eta", "eta", "DDRM's eta."),
    _option("--eta-b", "eta_b", "DDRM's eta_b."),
    _option("--min-confidence", "min_confidence", "Below it, a vote is invalid."),
    click.option("--data-dir", type=click.Path(), help="Folder of MNIST's files, for oracle."),
)
SPREAD = _options(
    click.option("--on", default="local", show_default=True, help="Or processes, ray[:HOST:PORT]."),
    click.option("--workers", type=int, help="How many; else one a core or GPU."),
    click.option("--batch", type=int, help="Samples that a worker has in flight."),
)


@click.command()
@CONFIG
@_option("--draws", "draws", "Votes of each pool.")
@_option("--per-shard", "per_shard", "Images a file.")
@SPREAD
@click.option("--out", type=click.Path(), required=True, help="Folder of the log.")
@json_option
def log(
    out: str, as_json: bool, on: str, workers: int | None, batch: int | None, **run: Any
) -> None:
    """Draw every vote of every round and keep them all; given again, it goes on."""
    from suffice.runs.execute import execute

    config = RunConfig(**run)
    done = 0
    with Progress(config.images, "images") as progress:

        def tell(images: int, votes: int) -> None:
            nonlocal done
            done = images
            progress(images, samples=votes)

        with _stoppable(
            lambda: f"{done} of {config.images} images are done; the same command goes on"
        ):
            execute(config, out, on, workers, batch, tell)
    record = {"images": config.images, "rounds": config.rounds, "draws": config.draws, "out": out}
    (print_json if as_json else print_pairs)(record)


@click.command()
@CONFIG
@required("--rule", str, "Rule file, or full, plug-in, one-look, sequential, sprt, e-process.")
@click.option("--tau", type=float, help="Threshold; each rule but a file needs it.")
@click.option("--eps", type=float, help="Error probability at tau.")
@click.option("--n-max", "--samples", "n_max", type=int, help="Votes of a pool at most. [32]")
@click.option("--q-alt", type=float, help="Mass at which sprt holds its power.")
@click.option("--power", type=float, help="OC(q_alt) of sprt.")
@SPREAD
@json_option
def sense(
    rule: str,
    tau: float | None,
    eps: float | None,
    n_max: int | None,
    q_alt: float | None,
    power: float | None,
    on: str,
    workers: int | None,
    batch: int | None,
    as_json: bool,
    **run: Any,
) -> None:
    """Sense images until the rule declares, as many at once as fill the sampler's batch."""
    from suffice.runs.live import run_live

    chosen = _rule(rule, tau, eps, n_max, q_alt, power)
    listed = [chosen] if isinstance(chosen, Rule) else chosen
    config = RunConfig(**run, draws=max(run["prefix"], *(each.n_max for each in listed), 1))
    done = 0
    with Progress(config.images, "images") as progress:

        def tell(images: int, declared: int, samples: int) -> None:
            nonlocal done
            done = images
            progress(images, declared=declared, samples=samples)

        with _stoppable(
            lambda: f"{done} of {config.images} images were sensed and nothing is kept"
        ):
            live = run_live(config, chosen, on, workers, batch, tell)
    record = live.summary()
    if as_json:
        print_json(record)
        return
    shown = {key: value for key, value in record.items() if not isinstance(value, (list, tuple))}
    print_pairs({**shown, "waste": record["wasted"] / max(record["drawn"], 1)})


@click.command()
@click.argument("votes", metavar="LOG")
@click.option("--rule", "files", multiple=True, help="Rule file; more of them are compared.")
@click.option("--check", "checked", is_flag=True, help="Test the log itself.")
@click.option("--shuffles", type=int, help="Of --check. [299]")
@click.option("--plot", type=click.Path(), help="Draw the --check in this file (svg, png, pdf).")
@json_option
def replay(
    votes: str,
    files: tuple[str, ...],
    checked: bool,
    shuffles: int | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """What rules would have done on a vote log."""
    from suffice.votes import read_log

    if not files and not checked:
        raise BadInput("replay needs at least one --rule FILE, or --check")
    if plot and not checked:
        raise BadInput(f"--plot {plot} draws the result of --check; give that too")
    if shuffles is not None and not checked:
        raise BadInput(f"--shuffles {shuffles} is for --check; give that too")
    read = read_log(votes)
    record: dict[str, Any] = {}
    if files:
        record["rules"] = _replayed(read, files)
    if checked:
        record["check"] = _checked(read, 299 if shuffles is None else shuffles, plot)
    if as_json:
        print_json(record)
        return
    if files:
        rows = [[row["file"], *(row[name] for name in MEANS)] for row in record["rules"]]
        print_table(["rule", *MEANS], rows)
    if checked:
        tests = record["check"]
        print_table(["check", "p"], [[test["test"], test["p_value"]] for test in tests])


def _replayed(read: Any, files: tuple[str, ...]) -> list[dict[str, Any]]:
    from suffice.replay import Replay

    ready = Replay(read)
    outcomes = [ready.run(load_rules(file)) for file in files]
    return [
        {
            "file": file,
            **outcome.summary(),
            **({"against_first": outcome.compare(outcomes[0])} if at else {}),
        }
        for at, (file, outcome) in enumerate(zip(files, outcomes, strict=True))
    ]


def _checked(read: Any, shuffles: int, plot: str | None) -> list[dict[str, Any]]:
    from suffice.check import check

    tests = check(read, shuffles)
    if plot is not None:
        _draw(tests, plot)
    return [
        {
            "test": test.name,
            "statistic": test.observed,
            "expected": float(test.shuffled.mean()),
            "p_value": test.p_value,
        }
        for test in tests
    ]


def _draw(tests: Any, path: str) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BadInput("--plot needs the extra `plot`: pip install 'suffice[plot]'") from None
    from suffice.files import replacing
    from suffice.plots import check_plot

    kind = Path(path).suffix[1:]
    if kind not in ("svg", "png", "pdf"):
        raise BadInput(f"--plot {path}: the name must end in .svg, .png or .pdf")
    figure = Figure(figsize=(6, 3))
    check_plot(figure.add_subplot(), tests)
    with replacing(path) as part:
        figure.savefig(part, format=kind, bbox_inches="tight")


def _rule(
    name: str,
    tau: float | None,
    eps: float | None,
    n_max: int | None,
    q_alt: float | None,
    power: float | None,
) -> Any:
    """The rule of that name at tau, or the rule or rules in that file."""
    given = {"tau": tau, "eps": eps, "n-max": n_max, "q-alt": q_alt, "power": power}
    n_max = 32 if n_max is None else n_max
    makers: dict[str, tuple[dict[str, Any], Callable[[], Rule]]] = {
        "full": ({}, lambda: rules.plug_in(tau, n_max, curtailed=False)),
        "plug-in": ({}, lambda: rules.plug_in(tau, n_max)),
        "one-look": ({"eps": eps}, lambda: rules.one_look(tau, eps, n_max)),
        "sequential": ({"eps": eps}, lambda: rules.sequential(tau, eps, n_max=n_max)),
        "sprt": (
            {"eps": eps, "q-alt": q_alt, "power": power},
            lambda: rules.sprt(tau, q_alt, eps, power, n_max),
        ),
        "e-process": ({"eps": eps}, lambda: rules.e_process(tau, eps, n_max)),
    }
    if name not in makers:
        if not Path(name).exists():
            raise BadInput(f"rule {name!r} is neither a file nor one of {', '.join(makers)}")
        extra = [f"--{key}" for key, value in given.items() if value is not None]
        if extra:
            raise BadInput(f"{extra[0]} does not go with the rule file {name}; leave it out")
        return load_rules(name)
    needs, make = makers[name]
    needs = {"tau": tau, "n-max": n_max, **needs}
    missing = [f"--{key}" for key, value in needs.items() if value is None]
    if missing:
        raise BadInput(f"--rule {name} needs {' and '.join(missing)}")
    extra = [f"--{key}" for key, value in given.items() if value is not None and key not in needs]
    if extra:
        raise BadInput(f"{extra[0]} does not go with --rule {name}; leave it out")
    return make()


@contextmanager
def _stoppable(state: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C ends a run with one line that says where it stands."""
    try:
        yield
    except KeyboardInterrupt:
        raise RunFailed(f"stopped: {state()}") from None
