"""The command `forge`: collects commands/, shows errors, and is the only place that ends the process."""

import sys
from typing import Annotated, NoReturn

import typer

import tflm_forge.commands as package
from tflm_forge import __version__
from tflm_forge.errors import ForgeError, UsageError
from tflm_forge.registry import list_names, load_alternative

INTERRUPTED_EXIT_CODE = 130

_HELP = """From a .tflite model to TensorFlow Lite Micro firmware that is known to run it.

Example: forge flash-and-test model.tflite --board stm32f4

Exit codes: 0 all is well, 2 usage, 3 model, 4 tool, 5 does not fit, 6 device, 7 a check said no, 130 interrupted.
"""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forge {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def make_app() -> typer.Typer:
    """Build the app from the modules of commands/: each offers `run`, or `app` for a group."""
    app = typer.Typer(
        name="forge",
        help=_HELP,
        invoke_without_command=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=_HELP)(_root)
    for name in list_names(package):
        module = load_alternative(package, name, kind="command")
        word = name.replace("_", "-")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=word)
        else:
            app.command(name=word)(module.run)
    return app


def main() -> None:
    """Run the command line and exit with the documented code."""
    try:
        code = make_app()(standalone_mode=False)
    except ForgeError as error:
        _fail(error)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED_EXIT_CODE
    except typer.TyperException as error:
        # The base of typer's errors has no words of its own; those that parsing raises have.
        words = getattr(error, "format_message", error.__str__)()
        _fail(UsageError(words, hint="`forge COMMAND --help` shows what a command takes."))
    if code == INTERRUPTED_EXIT_CODE:  # also what typer makes of Ctrl-C inside a command
        sys.stderr.write("interrupted\n")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(error: ForgeError) -> NoReturn:
    from tflm_forge.console import show_error

    show_error(error)
    sys.exit(error.exit_code)
