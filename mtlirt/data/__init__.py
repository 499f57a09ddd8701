"""`Responses`, the one container that every part of mtlirt takes answers in."""

from mtlirt.data.responses import Responses

__all__ = ["Responses"]
