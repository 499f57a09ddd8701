"""One html file about a fit: everything is first a plain dict (`facts`), then laid out (`page`)."""

from mtlirt.report.evidence import Evidence
from mtlirt.report.facts import facts
from mtlirt.report.page import render, write_report

__all__ = ["Evidence", "facts", "render", "write_report"]
