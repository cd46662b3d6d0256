"""The command line: parsing and printing only; each verb is one call of the library."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from suffice.cli_design import design
from suffice.cli_plan import plan_
from suffice.cli_reproduce import reproduce_
from suffice.cli_rules import bound, certify, match, oc_
from suffice.cli_run import log, replay, sense
from suffice.errors import BadInput, RunFailed

__all__ = ["main", "suffice"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="suffice")
def suffice() -> None:
    """How many samples suffice? Calibrated stopping for votes drawn from expensive samplers."""


for verb in (design, certify, oc_, match, bound, log, sense, replay, plan_, reproduce_):
    suffice.add_command(verb)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 bad usage or input, 1 a failed run."""
    sys.exit(_code(args))


def _code(args: Sequence[str] | None) -> int:
    try:
        code = suffice.main(args=args, prog_name="suffice", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        verb = getattr(error, "ctx", None)
        hint = f"; see `{verb.command_path} --help`" if verb else ""
        return _say(error.format_message().rstrip(".") + hint, 2)
    except BadInput as error:
        return _say(str(error), 2)
    except RunFailed as error:
        return _say(str(error), 1)
    except OSError as error:  # standard output that is full or closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _say(f"{error.filename or 'the output'}: {error.strerror}; nothing more is told", 1)
    except click.Abort:
        return _say("stopped by the user", 1)


def _say(message: str, code: int) -> int:
    """Put one line on standard error."""
    click.echo(f"suffice: {' '.join(message.split())}", err=True)
    return code
