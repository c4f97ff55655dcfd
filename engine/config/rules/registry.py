"""Every rule of the reference engine, by code."""

from staticfire.engine.config.rules import sf101
from staticfire.engine.config.rules.base import RewriteRule, Rule

RULES: tuple[Rule, ...] = (sf101.RULE,)
REWRITES: tuple[RewriteRule, ...] = ()

BY_CODE: dict[str, Rule | RewriteRule] = {rule.code: rule for rule in (*RULES, *REWRITES)}
