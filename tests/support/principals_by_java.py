"""What Kafka's own SslPrincipalMapper makes of names in certificates, and rules to try it on."""

from __future__ import annotations

import base64
import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from support.kafka_jars import class_path, java
from trionet.errors import AuthenticationError, ConfigError
from trionet.net._principal import PrincipalMapping

#: Rules of Kafka's manual and of its own tests.
KAFKA_RULES: Final = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L",
    r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
    r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/",
)
#: Names in the form of RFC 2253, as people have them, and some that nearly are.
NAMES: Final = (
    "CN=kafka1,OU=ServiceUsers,O=Org,L=City,ST=State,C=US",
    "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
    "cn=duke,ou=sme,dc=mycp,dc=com",
    "CN=broker-0.kafka.svc,O=io.strimzi",
    "OU=JavaSoft,O=Sun Microsystems,C=US",
    r"CN=Doe\, Jane,OU=a\+b,O=Müller & Söhne",
    "1.2.840.113549.1.9.1=#160d61,CN=a,CN=b,CN=a",
    "CN=a\nb,O=x\r\n",
    "CN=İstanbul ß,O=Σ\u2028",
    "C=",
    "",
)

Verdict = str | None
"""The mapped name; None for one that no rule matches, and ``!`` where the rules are refused."""


def mapped_by_java(pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
    """Kafka's verdicts on pairs of rules and a name; raises `Unavailable` without Java."""
    source = Path(__file__).parent / "clients" / "JavaPrincipals.java"
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder, "asked"), Path(folder, "told")
        asked.write_text("".join(f"{_encoded(rules)}\t{_encoded(name)}\n" for rules, name in pairs))
        command = [java(), "-cp", class_path(), str(source), str(asked), str(told)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        return [_verdict(line) for line in told.read_text().splitlines()]


def _verdict(line: str) -> Verdict:
    if line[0] == "+":
        return base64.b64decode(line[1:]).decode()
    return None if line == "-" else line


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def mapped_by_us(rules: str, name: str) -> Verdict:
    """Our verdict on a pair."""
    try:
        mapping = PrincipalMapping(rules)
    except ConfigError:
        return "!"
    try:
        return mapping.name(name)
    except AuthenticationError:
        return None


_LITERALS: Final = (
    *("CN=", "OU=", ",", "=", "a", "b", "kafka", ".", r"\.", r"\w", r"\d", r"\s", r"\W", "[a-z]"),
    *("[^,]", "[^=,]", "[a-zA-Z0-9.]", "[a-z&&[^k]]", r"[\w.-]", r"\p{Upper}", r"\p{L}", "[cC]"),
    *("(?i:cn)", r"\b", "O", "S", r"\x2C", r"\Q,O\E"),
)
_REPETITIONS: Final = ("", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{1,}?", "*+")
_REPLACEMENTS: Final = ("$1", "$1", "$0", "$2@$1", "<$1>", "x", "$12", r"a\$1", "$1-$2-$3")


def random_rule(rng: random.Random) -> str:
    """A rule with groups, alternatives and repetitions, greedy, lazy and possessive."""
    start, end = rng.choice([("^", "$"), ("", ""), ("^.*?", ".*$"), ("(.*)", ".*"), ("^", "(.*?)")])
    pattern = start + "".join(_part(rng, 2) for _ in range(rng.randint(1, 4))) + end
    groups = len(re.findall(r"\((?!\?)", pattern))
    # Kafka fails on a reference where there is no group, and on a second one to a missing group.
    replacements = [each for each in _REPLACEMENTS if max(_numbers(each)) <= groups] or ["x"]
    return f"RULE:{pattern}/{rng.choice(replacements)}/{rng.choice(('', '', 'L', 'U'))}"


def _numbers(replacement: str) -> list[int]:
    return [0, *map(int, re.findall(r"(?<!\\)\$(\d)", replacement))]


def _part(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(_LITERALS) + rng.choice(_REPETITIONS)
    if kind < 0.6:
        return f"(.{rng.choice(('*?', '*', '+', '+?'))}){rng.choice(('', ',', '=', '|a', ',.*'))}"
    inner = ["".join(_part(rng, depth - 1) for _ in range(rng.randint(1, 2))) for _ in range(2)]
    group = rng.choice(("(", "(?:"))
    text = "|".join(inner[: rng.randint(1, 2)])
    # Kafka would not finish with repetitions that are repeated.
    repetitions = _REPETITIONS if re.search(r"[*+{]", text) is None else ("", "?", "??")
    return f"{group}{text}){rng.choice(repetitions)}"
