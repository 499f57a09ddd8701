"""Exceptions and warnings. Every message says what is wrong, where, and what to do next."""


class MtlirtError(Exception):
    """Base of every error that mtlirt raises on purpose."""


class InputError(MtlirtError, ValueError):
    """The input cannot be used as it is: a file, a column, a cell, an argument. The command line exits with 2."""


class FitError(MtlirtError, RuntimeError):
    """The input was good but no usable result came out. The command line exits with 1."""


class ConvergenceWarning(UserWarning):
    """A fit ended before its stopping rule held; the result is the best point found."""


class DataWarning(UserWarning):
    """Answers were left out, merged or cannot be told apart; the message counts them."""
