"""An audit of source for people."""

from staticfire.harness.sync.source.report import Coverage, Finding, Report


def render(report: Report) -> str:
    """Every finding, the verdict, and what was looked at."""
    return "\n\n".join([*map(_finding, report.findings), f"{verdict(report)}\n{coverage(report.coverage)}"])


def verdict(report: Report) -> str:
    """One line."""
    number = len(report.findings)
    if not number:
        return f"Everything that is settled after the copy and read elsewhere travels: {report.root}."
    return f"{number} {'field does' if number == 1 else 'fields do'} not travel: {report.root}."


def coverage(seen: Coverage) -> str:
    """What was looked at, and what was not followed."""
    brought = ", ".join(f"{name} brings {count}" for name, count in seen.channels.items())
    placed = ", ".join(f"{count} {process}" for process, count in seen.placed.items())
    lines = [
        f"coverage: {seen.files} files, {seen.fields} fields of the configuration ({brought}), {seen.writes} writes",
        f"  placed: {placed or 'none'}",
    ]
    if seen.undecided:
        lines.append("  undecided: " + "; ".join(f"{why}: {count}" for why, count in seen.undecided.items()))
    lines += [f"  not read: {item.path}:{item.line}: {item.why}" for item in seen.unread]
    return "\n".join(lines)


def _finding(finding: Finding) -> str:
    lines = [
        f"{finding.write}: {finding.field} is settled by the {finding.process}: {finding.reason}.",
        f"    read in the front end: {finding.read}",
    ]
    if finding.applied is not None:
        lines.append(f"    taken over by the client: {finding.applied}")
    if finding.more:
        lines.append(f"    written as well: {', '.join(map(str, finding.more))}")
    return "\n".join(lines)
