"""What the catalogue says of a rule, for those who may not read it themselves."""

from staticfire.harness.triage.group import RuleFacts


def rule_facts(code: str) -> RuleFacts | None:
    """Name, summary and fix of a rule; None for an unknown code."""
    from staticfire.engine.config.rules.registry import BY_CODE

    rule = BY_CODE.get(code)
    return RuleFacts(rule.name, rule.summary, rule.fix, rule.example.fix or {}) if rule is not None else None
