"""Every report format. A new one is one module and one line here."""

from collections.abc import Mapping

from staticfire.harness.report import html_page, junit_xml, results_json
from staticfire.harness.report.base import ReportFormat

_ALL: tuple[ReportFormat, ...] = (results_json, junit_xml, html_page)

FORMATS: Mapping[str, ReportFormat] = {form.NAME: form for form in _ALL}
