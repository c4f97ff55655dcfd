"""Which variables a piece of shell may assign: rather too many than too few."""

import re
from dataclasses import dataclass

_ASSIGNED = re.compile(r"(?<![\w$])([A-Za-z_]\w*+)(?:\[[^\]\n]{0,99}\])?\s{0,3}(?:<<|>>|:?[-+*/%&^|?]?)=")
_STEPPED = re.compile(
    r"(?:\+\+|--)\s{0,3}([A-Za-z_]\w*+)|(?<![\w$])([A-Za-z_]\w*+)(?:\[[^\]\n]{0,99}\])?\s{0,3}(?:\+\+|--)"
)
_LOOPED = re.compile(r"\b(?:for|select|coproc)\s{1,9}([A-Za-z_]\w*+)|\{([A-Za-z_]\w*+)\}[<>]")
_READING = re.compile(
    r"\b(?:read|readarray|mapfile|getopts|unset|wait|printf|let|local|declare|typeset|export|readonly|shift|set)\b"
    r"((?:\\\n|[^\n;&|])*+)"
)
_NAME = re.compile(r"(?<![\w$])[A-Za-z_]\w*+")
_ANYTHING = re.compile(
    r"(?<![-\w/.=])(?:eval|alias|enable|shopt)(?![-\w/.=])"
    r"|(?<![-\w/.=])trap(?![-\w/.=])(?!\s{1,9}(?:-|''|\"\")\s)"
    r"|(?<![-\w/.=])source\s{1,9}(?!\S{0,200}bin/activate[\"']?(?:\s|;|&|$))|(?:^|[\s;&|({])\.\s(?!\S{0,200}bin/activate)"
    r"|(?<![-\w/.=])(?:local|declare|typeset|readonly|export)\s[^\n;&|]{0,99}-\w{0,9}n"
)
_SUBSTITUTED = re.compile(r"\$\(\(|\$\{|\$\[|\(\(")

DYNAMIC = frozenset({
    "BASH", "BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_ARGV0", "BASH_CMDS",
    "BASH_COMMAND", "BASH_LINENO", "BASH_REMATCH", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_VERSINFO",
    "BASH_VERSION", "COLUMNS", "COPROC", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME",
    "GROUPS", "HISTCMD", "HOME", "HOSTNAME", "HOSTTYPE", "IFS", "LINENO", "LINES", "MACHTYPE", "MAPFILE",
    "OLDPWD", "OPTARG", "OPTERR", "OPTIND", "OSTYPE", "PATH", "PIPESTATUS", "PPID", "PWD", "RANDOM",
    "READLINE_LINE", "REPLY", "SECONDS", "SHELLOPTS", "SHLVL", "SRANDOM", "UID", "_",
})  # fmt: skip
"""Variables that the shell itself sets, reads or changes."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """What a piece of shell may assign.

    Attributes:
        names: Variables.
        anything: Whether it can be any variable: it runs text that is not here, or gives names to variables.
    """

    names: frozenset[str]
    anything: bool = False


def assigned(text: str) -> Assigned:
    """What a text may assign when all of it runs, calls of functions left out."""
    if _ANYTHING.search(text):
        return Assigned(frozenset(), anything=True)
    names = {found[1] for found in _ASSIGNED.finditer(text)}
    names.update(found[1] or found[2] for found in _STEPPED.finditer(text))
    names.update(found[1] or found[2] for found in _LOOPED.finditer(text))
    for found in _READING.finditer(text):
        names.update(_NAME.findall(found[1]))
    return Assigned(frozenset(names))


def substituted(text: str) -> Assigned:
    """What the expansions in a word may assign: `${x:=1}`, `$((x = 1))`, an index that counts."""
    first = _SUBSTITUTED.search(text)
    if first is None:
        return _NOTHING
    inside = text[first.end() : max(text.rfind("}"), text.rfind(")"), text.rfind("]"), first.end())]
    names = {found[1] for found in _ASSIGNED.finditer(inside)}
    names.update(found[1] or found[2] for found in _STEPPED.finditer(inside))
    return Assigned(frozenset(names)) if names else _NOTHING


_NOTHING = Assigned(frozenset())


__all__ = ["DYNAMIC", "Assigned", "assigned", "substituted"]
