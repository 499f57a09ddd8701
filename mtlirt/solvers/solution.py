"""What a solver answers."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from mtlirt.core.start import Start


class Status(Enum):
    """How a fit ended; the value is the sentence that the user reads."""

    CONVERGED = "Converged: the projected gradient and the last decrease are within tolerance."
    MAX_STEPS = (
        "Not converged: the limit of steps was reached before the stopping rule held. The result is the best point "
        "found; raise the limit, or loosen `tol`."
    )
    STALLED = (
        "Not converged: no step lowered the objective although the projected gradient is above tolerance. The result "
        "is the best point found; try another start with `init`, or loosen `tol`."
    )


@dataclass(frozen=True)
class Solution:
    """theta : (T, N), fused rows equal to `general` to the bit.  general : (N,).  a, d : (J,).  fused : (T,) bool.
    trace : one dict per sweep or step."""

    theta: np.ndarray
    general: np.ndarray
    a: np.ndarray
    d: np.ndarray
    fused: np.ndarray
    status: Status
    trace: list[dict[str, float]]

    @property
    def start(self) -> Start:
        """The same point, to start from."""
        return Start(self.theta, self.general, self.a, self.d)


OnStep = Callable[[dict[str, float]], None]
