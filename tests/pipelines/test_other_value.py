"""The same rule with another value takes the place of the earlier one; two rules that can both hold do not."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.other_value import with_other_value
from memoryvault.pipelines.reversal import Rule


def takes_the_place(statement: str, known: str) -> bool:
    return with_other_value(statement, [Rule("known.md", known)]) != []


@pytest.mark.parametrize(
    ("known", "statement"),
    [
        ("Always deploy on Mondays.", "Always deploy on Tuesdays."),
        ("Always ship on Tuesday mornings.", "From now on, ship on Thursday afternoons"),
        ("We always deploy on Mondays", "Only deploy on Thursdays"),
        ("Always deploy in the morning", "Please always deploy in the evening"),
        ("Always run the backup at 3am", "Always run the backup at 4 am"),
        ("Always deploy before 5 pm", "Always deploy before 4 pm"),
        ("Use 2 spaces for indentation", "Always use four spaces for indentation."),
        ("Always use 2-space indentation", "Always use 4-space indentation"),
        ("Keep an 80-column limit", "Keep a 100-column limit"),
        ("Always deploy at 3pm.", "Always deploy at 4 p.m."),
        ("Use tabs", "Always use 2 spaces"),
        ("Keep lines under 100 characters", "Keep lines under 80 characters"),
        ("Our line length is 100", "Our line length is 88"),
        ("Keep coverage above 80%", "Keep coverage above 90%"),
        ("Always use port 8080 for staging", "Always use port 9090 for staging."),
        ("Remember that staging is at port 8081", "Please remember that staging is at port 8082"),
        ("Use Python 3.11", "From now on, use Python 3.12"),
        ("Use single quotes", "Use double quotes"),
        ("Write comments in British English", "Write comments in American English"),
        ("Use snake_case for columns", "Use camelCase for columns"),
        ("Always answer in German", "Always answer in English"),
    ],
)
def test_of_two_values_that_exclude_each_other_one_rule_holds(known: str, statement: str) -> None:
    assert takes_the_place(statement, known)
    assert takes_the_place(known, statement)


@pytest.mark.parametrize(
    ("known", "statement"),
    [
        # Of no closed kind: both hold.
        ("Use ruff for linting", "Use black for formatting"),
        ("Use PEP 8", "Use PEP 257"),
        ("Always test on Python 3.11", "Always test on Python 3.12"),
        ("Always expose port 8080", "Always expose port 9090"),
        # One prohibition does not lift the other.
        ("Never push to main", "Never push to develop"),
        ("Never push on Fridays", "Never push on Mondays"),
        ("Avoid deploying on Fridays", "Avoid deploying on Mondays"),
        # The value is in the condition.
        ("Always ask before deploying on Fridays", "Always ask before deploying on Mondays"),
        ("Always use the proxy for port 8080", "Always use the proxy for port 9090"),
        ("Use tabs in Python 2 code", "Use tabs in Python 3 code"),
        ("Always run the tests on Python 3.11", "Always run the tests on Python 3.12"),
        # About something else, or an exception.
        ("Always deploy the API on Mondays", "Always deploy the web app on Tuesdays"),
        ("Always deploy after 9:00", "Always deploy before 17:00"),
        ("Staging is at port 8081", "Production is at port 8082"),
        ("Use 2 spaces in YAML", "Use 4 spaces in Python"),
        ("Always deploy on Mondays", "In this repo we deploy on Tuesdays"),
        # One says the other more exactly, or in other words.
        ("Always deploy on Tuesdays", "Always deploy on Tuesday mornings"),
        ("Use spaces", "Use 2 spaces"),
        ("Always deploy on Mondays.", "From now on, deploy on Monday!"),
        ("Always deploy every Monday", "Always deploy every morning"),
        ("Always run the backup at 3am", "Always run the backup at 3:00 am"),
        ("Always run the backup at 3am", "Always run the backup at 3:00"),
        ("Use camelCase for columns", "Use camel case for columns"),
        ("Use US English", "Use American English"),
        ("Use Python v3.12", "Always use Python 3.12"),
    ],
)
def test_rules_that_can_both_hold_stand_beside_each_other(known: str, statement: str) -> None:
    assert not takes_the_place(statement, known)
    assert not takes_the_place(known, statement)
