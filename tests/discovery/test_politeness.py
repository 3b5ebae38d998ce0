"""How often a host is asked, and how long it is left alone after a failure or on its request."""

import json

import pytest

from .bed import Bed, a_list
from .server import Site

DAY = 86_400.0


def test_requests_to_one_host_keep_their_distance(bed: Bed, site: Site) -> None:
    bed.sources(*(f"list: {site.put(f'/{n}.md', a_list('a'))}" for n in range(3)))
    bed.scan()
    assert bed.clock.pauses == [2.0, 2.0]


def test_a_host_that_fails_is_left_alone_for_longer_each_time_also_by_the_next_process(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', 'x', status=503)}")
    waited = []
    for _ in range(3):
        assert bed.scan().sources[0].state == "error"
        report = bed.scan()
        assert report.sources[0].state == "waiting"
        assert report.again_at is not None
        waited.append(report.again_at - bed.clock.now)
        bed.clock.now = report.again_at + 1
    assert waited == [300.0, 600.0, 1200.0]
    assert len(site.asked) == 3
    site.put("/l.md", a_list("a"))
    assert bed.scan().sources[0].state == "fetched"


def test_retry_after_is_kept_to(bed: Bed, site: Site) -> None:
    bed.sources(f"list: {site.put('/l.md', 'x', status=429, retry_after='7200')}")
    bed.scan()
    assert bed.scan().again_at == bed.clock.now + 7200


@pytest.mark.parametrize(("status", "unit"), [(200, 1000), (403, 1000), (429, 1_000_000)], ids=str)
def test_an_allowance_that_begins_anew_in_a_thousand_years_silences_a_host_for_a_day_only(
    bed: Bed, site: Site, status: int, unit: int
) -> None:
    """Some servers give the time in milliseconds."""
    reset = int(bed.clock.now + 900) * unit
    body = json.dumps({"items": []})
    site.put("/search/repositories", body, status, x_ratelimit_remaining="0", x_ratelimit_reset=str(reset))
    bed.sources("topic: a", "topic: b")
    until = bed.scan().again_at
    assert until is not None
    assert until <= bed.clock.now + DAY
    bed.clock.now = until + 1
    assert bed.scan().sources[0].state != "waiting"


def test_an_allowance_of_no_number_is_none(bed: Bed, site: Site) -> None:
    body = json.dumps({"items": []})
    site.put("/search/repositories", body, x_ratelimit_remaining="0", x_ratelimit_reset="9" * 400)
    bed.sources("topic: a")
    assert bed.scan().sources[0].state == "fetched"


def test_a_host_that_failed_while_the_clock_was_years_ahead_may_be_asked(bed: Bed, site: Site) -> None:
    right = bed.clock.now
    bed.sources(f"list: {site.put('/l.md', 'x', status=503)}")
    bed.clock.now += 3 * 365 * DAY
    bed.scan()
    site.put("/l.md", a_list("a"))
    bed.clock.now = right
    assert bed.scan().sources[0].state == "fetched"


def test_a_host_that_says_at_once_again_and_again_is_taken_at_its_word_once(bed: Bed, site: Site) -> None:
    """Otherwise all attempts of a job would be used up within seconds."""
    bed.sources(f"list: {site.put('/l.md', 'x', status=429, retry_after='0')}")
    waited = []
    for _ in range(4):
        report = bed.scan()
        assert report.again_at is not None
        waited.append(report.again_at - bed.clock.now)
        bed.clock.now = report.again_at + 1
    assert waited == [2.0, 300.0, 600.0, 1200.0]


def test_an_allowance_that_is_used_up_is_remembered(bed: Bed, site: Site) -> None:
    reset = int(bed.clock.now) + 900
    answered = json.dumps({"items": []})
    site.put("/search/repositories", answered, x_ratelimit_remaining="0", x_ratelimit_reset=str(reset))
    bed.sources("topic: a", "topic: b")
    assert [source.state for source in bed.scan().sources] == ["fetched", "waiting"]
    bed.clock.now = reset + 1
    assert bed.scan().sources[0].state == "fetched"
