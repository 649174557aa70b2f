"""Principals, and the rules that make their names from certificates."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import AuthenticationError, ConfigError
from trionet.net._principal import (
    ANONYMOUS,
    STEPS_MAX,
    Identity,
    Principal,
    PrincipalMapping,
)

NAME = "CN=kafka1,OU=Service Users,O=Org,C=US"

# Kafka's own: SslPrincipalMapperTest.
KAFKA_RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_gives_the_name(name: str, expected: str) -> None:
    assert expected == PrincipalMapping(KAFKA_RULES).name(name)


def test_by_default_the_name_is_the_subject() -> None:
    assert NAME == PrincipalMapping().name(NAME)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (r"RULE:^CN=(.*?),.*$/$1/", "kafka1"),
        (r"RULE:^CN=([^,\/]*).*$/a\/$1/U", "A/KAFKA1"),
        (r"RULE:^CN=(.*?),.*$/\$1/", "$1"),
        (r"RULE:^CN=(.*?),.*$/$12/", "kafka12"),
        (r"RULE:^CN=(.*?),.*$/$2/", "$2"),
        (r"RULE:^CN=(.*?),(x)?.*$/$1$2./", "kafka1."),
        (r"RULE:^CN=(.*?),.*$/$0012/", "kafka12"),
        (f"RULE:^CN=(.*?),.*$/$1{5000 * '9'}/", "kafka1" + 5000 * "9"),
        (r"RULE:^CN=.*$/$0/L", NAME.lower()),
        (r"RULE:^x$/y/,  ,DEFAULT", NAME),
        # Kafka replaces every match inside the name, also the empty one at its end.
        ("RULE:(.*)/user/", "useruser"),
        ("RULE:^(.*)$/user/", "user"),
        ("RULE:^CN=(?<first>.*?),.*$/${first}!/", "kafka1!"),
        ("RULE:^CN=([[a-z0-9]&&[^x]]+),.*$/$1/", "kafka1"),
        (r"RULE:^CN=(\p{Alnum}++),(?=OU).*$/$1/U", "KAFKA1"),
        (r"RULE:^.*(O)U=.*,\1=.*$/$1/", "O"),
        (r"RULE:^(?i)cn=(\w*).*\QO=\E.*$/$1/", "kafka1"),
    ],
)
def test_replacements_follow_java(rules: str, expected: str) -> None:
    assert expected == PrincipalMapping(rules).name(NAME)


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/U",
        "RULE:CN=(.*?),OU=ORG.*/$1",
        "RULE:^CN=(.*?),OU=ORG.*$/$1",
        "RULE:^CN=(.*?),OU=ORG.*$/$1/LU",
        "RULE:^CN=(.*?),OU=ORG.*$/$1/A",
        "RULE:^CN=(.*?/L",
        "RULE:(/$1/",
        "RULE:^CN=a{99999999999}$/a/",
        f"RULE:{5000 * '('}a{5000 * ')'}/a/",
        "RULE:^CN=(a)$/${b}/",
        "RULE:^CN=(a)$/$/",
        "RULE:^CN=a$/$1/",
        "nonsense, DEFAULT",
    ],
)
def test_what_is_no_rule_is_a_configuration_error(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping(rules)


def test_a_name_that_no_rule_matches_is_refused() -> None:
    with pytest.raises(AuthenticationError, match="no rule"):
        PrincipalMapping("RULE:^CN=x$/y/").name(NAME)


#: Lazy groups in a row, each of which could end at any of the parts of the name.
LAZY = "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1/L,DEFAULT"


def test_a_name_made_for_lazy_groups_is_mapped_at_once() -> None:
    """It would take a backtracking matcher hours."""
    name = "CN=mallory" + 250 * ",OU=a,O=b,L=c,ST=d"

    assert name == PrincipalMapping(LAZY).name(name)
    assert "mallory" == PrincipalMapping(LAZY).name(f"{name},C=e")


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (LAZY, 10_000 * "CN=a,OU=b,"),
        (LAZY, "CN=" + "".join(map(chr, range(0x3400, 0x9000)))),
        (r"RULE:^(\w+)*=(\1)*x$/$1/", 100 * "a"),
        ("RULE:^(?:(a|aa)+)+(?=x)$/$1/", 20_000 * "a"),
        (r"RULE:^(?:\w*+,?)*+x$/$0/", 20_000 * "a,"),
        ("RULE:.*z|a[^y]*y|a/$0/", 20_000 * "a" + "z"),
        (r"RULE:(?:.*\b)*x/$0/", 20_000 * "a,"),
        ("RULE:.*?/$0/", 20_000 * "a"),
    ],
    ids=lambda text: text[:20],
)
def test_a_name_that_would_hold_the_loop_for_long_is_refused(rules: str, name: str) -> None:
    with pytest.raises(AuthenticationError, match=f"more than {STEPS_MAX} steps for a name of"):
        PrincipalMapping(rules).name(name)


def test_long_names_of_usual_form_are_far_below_the_limit() -> None:
    """Also the first one, when no transition is known yet."""
    name = (
        "CN=orders-service.production.svc.cluster.local,OU=Platform Engineering,OU=Commerce,"
        "O=Example International Manufacturing Corporation,L=San Francisco,ST=California,C=US"
    )

    assert "orders-service.production.svc.cluster.local@platform engineering,ou=commerce" == (
        PrincipalMapping(KAFKA_RULES).name(name)
    )


@pytest.mark.parametrize(
    "rule",
    [
        "RULE:^CN=(.*?),OU=Team {},O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1/L",
        "RULE:^.*OU=(.*?),.*O=Org{}.*$/$1/",
        r"RULE:^CN=([^,]*)\.team{}\.example\.com,.*$/$1/",
    ],
)
def test_many_rules_do_not_reject_the_first_name_of_usual_form(rule: str) -> None:
    """No transition of any rule is known yet."""
    name = (
        "CN=orders-service.production.svc.cluster.local,OU=Platform Engineering,OU=Commerce,"
        "O=Example International Manufacturing Corporation,L=San Francisco,ST=California,C=US"
    )
    rules = ",".join(rule.format(number) for number in range(40))

    assert name == PrincipalMapping(f"{rules},DEFAULT").name(name)


def test_patterns_that_are_not_linear_are_known() -> None:
    mapping = PrincipalMapping(r"RULE:^(a)\1$/x/,RULE:^(.*?)$/$1/,RULE:^(?!b)a++$/x/,DEFAULT")

    assert (r"^(a)\1$", "^(?!b)a++$") == mapping.bounded


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_rules_are_taken_or_refused_and_any_name_mapped_or_refused(
    rules: str, name: str
) -> None:
    try:
        mapping = PrincipalMapping(rules)
    except ConfigError:
        return
    try:
        mapping.name(name)
    except AuthenticationError:
        pass


@given(st.from_regex(re.compile(r"[a-z0-9 .=]{1,10}"), fullmatch=True))
def test_a_rule_for_the_common_name_gives_it_back(common_name: str) -> None:
    mapping = PrincipalMapping("RULE:^CN=(.*?),O=org$/$1/")

    assert common_name == mapping.name(f"CN={common_name},O=org")


def test_who_proved_nothing_is_anonymous() -> None:
    """P28: on a plaintext listener the principal is User:ANONYMOUS."""
    principal = PrincipalMapping()(Identity("PLAINTEXT", "127.0.0.1"))

    assert ANONYMOUS == principal
    assert "User:ANONYMOUS" == str(principal)


def test_the_user_of_sasl_comes_before_the_certificate() -> None:
    identity = Identity("SASL_SSL", "::1", NAME, b"der", "PLAIN", "alice")

    assert Principal("User", "alice") == PrincipalMapping()(identity)


def test_a_certificate_gives_its_mapped_name() -> None:
    mapping = PrincipalMapping("RULE:^CN=(.*?),.*$/$1/")

    assert Principal("User", "kafka1") == mapping(Identity("SSL", "::1", NAME, b"der"))


def test_a_principal_is_written_with_its_type() -> None:
    assert "User:a:b" == str(Principal("User", "a:b"))
