"""The command line, `mtlirt`."""

from __future__ import annotations

import sys

from mtlirt.errors import FitError, InputError


class StoppedError(Exception):
    """Somebody stopped the work; the message says what is left of it."""


def main() -> None:
    """Run the command line: exit 0 for success, 1 if no usable result came out, 2 for bad input, 130 if interrupted."""
    try:
        from mtlirt.cli.app import app

        app()
    except InputError as error:
        _stop(str(error), 2)
    except FitError as error:
        _stop(str(error), 1)
    except StoppedError as error:
        _stop(str(error), 130)
    except KeyboardInterrupt:
        _stop("interrupted, no results were written", 130)
    except MemoryError:
        _stop("out of memory: fit fewer models, items or domains at once", 1)


def _stop(message: str, code: int) -> None:
    sys.stderr.write(f"mtlirt: {message}\n")
    raise SystemExit(code)
