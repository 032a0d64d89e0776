"""The dashboard in a real browser, against canned answers: every state that a space can be in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from live.browser import canned
from live.browser.chromium import WIDTHS, Watched, opened, overflow

pytestmark = pytest.mark.slow


@pytest.fixture
def site() -> Iterator[tuple[str, canned.Answers]]:
    with canned.serving() as found:
        yield found


def show(chromium: Any, site: tuple[str, canned.Answers], **view: Any) -> Watched:
    watched = opened(chromium, f"{site[0]}#token={canned.TOKEN}", **view)
    watched.page.wait_for_selector("#main:not([hidden]), #empty:not([hidden])")
    return watched


def words(watched: Watched) -> list[str]:
    return [w.strip() for w in watched.page.locator("#answers .word").all_inner_texts()]


def test_all_is_well(chromium: Any, site: tuple[str, canned.Answers]) -> None:
    with show(chromium, site) as seen:
        assert words(seen) == ["✓ Yes"] * 4
        assert seen.page.locator("#agents tbody tr").count() == 3
        assert seen.page.locator("#charts canvas").count() == 4
        assert seen.page.locator("#theta circle").count() == 9 + 8 + 8  # two tasks lack a feature
        assert seen.page.locator("#epochs circle, #epochs .late").count() == 38
        assert "token" not in seen.page.url  # the address can be shown and shared
        assert seen.page.locator("#alerts article").count() == 0


def test_rows_that_are_used_twice_are_said_to_be(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    agents = [canned.agent("home", 1, gauges={"reused": 1200}), canned.agent("mail", 2)]
    site[1].summary = canned.summary(agents=agents)
    with show(chromium, site) as seen:
        assert words(seen)[0] == "! Not promised"
        answer = seen.page.locator(".answer", has_text="Is it safe?").inner_text()
        assert "1,200 rows of logs were learned that had been looked at" in answer


def test_alerts_are_urgent_first_and_say_what_to_do(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    answers = site[1]
    answers.summary = canned.summary(
        alerts=[canned.ALERTS[1], canned.ALERTS[0]],
        agents=[
            canned.agent("home", 1, gauges={"margin_min": -0.012}),
            canned.agent("mail", 2, state="stale", last_seen_s=412.0),
        ],
    )
    with show(chromium, site) as seen:
        shown = seen.page.locator("#alerts article")
        assert [a.get_attribute("data-alert") for a in shown.all()] == ["margin", "stale"]
        assert "Pause learning" in shown.nth(0).inner_text()
        assert words(seen) == ["✕ No", "✓ Yes", "✓ Yes", "! In part"]
        assert "✕ stale" in seen.page.locator("tr.state-stale").inner_text()
        answers.summary = canned.summary()
        shown.first.wait_for(state="detached")


def test_an_alert_is_acknowledged_with_a_reason(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    answers = site[1]
    answers.summary = canned.summary(alerts=[canned.ALERTS[1]])
    with show(chromium, site) as seen:
        assert seen.page.title().startswith("(1) ")
        seen.page.get_by_role("button", name="Acknowledge").click()
        seen.page.fill("#reason", "it is being replaced")
        seen.page.locator("#ask-go").click()
        shown = seen.page.locator("#alerts article", has_text="Acknowledged by somebody")
        shown.wait_for()
        assert "it is being replaced" in shown.inner_text()
        assert shown.get_by_role("button").count() == 0
        assert not seen.page.title().startswith("(")
    path = "/v1/spaces/films/alerts/stale/acknowledge"
    body = {"task": "mail", "reason": "it is being replaced"}
    assert answers.posted[-1] == (path, body)


def test_only_an_admin_can_acknowledge(chromium: Any, site: tuple[str, canned.Answers]) -> None:
    site[1].role, site[1].summary = "viewer", canned.summary(alerts=[canned.ALERTS[1]])
    with show(chromium, site) as seen:
        assert seen.page.locator("#alerts article").count() == 1
        assert seen.page.locator("#alerts button").count() == 0


def test_why_conservative_in_one_click(chromium: Any, site: tuple[str, canned.Answers]) -> None:
    site[1].summary = canned.summary(
        agents=[
            canned.agent(
                "home",
                1,
                reasons={"stuck": 30, "paused": 10, "brand-new": 0},
                why="learning is paused: maintenance",
            )
        ]
    )
    with show(chromium, site) as seen:
        seen.page.get_by_role("button", name="Why is home conservative?").click()
        text = seen.page.locator("#why").inner_text()
        assert "learning is paused: maintenance" in text
        assert text.index("stuck") < text.index("30 (75 %)") < text.index("10 (25 %)")
        assert "Resume learning" in text
        assert "brand-new" not in text
        seen.page.keyboard.press("Escape")
        assert seen.page.locator("#why[open]").count() == 0


def test_a_stuck_task_is_named_with_its_outlook(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    outlook = "Stuck: no certified play teaches about feature genre, so nothing else is certified."
    held = canned.agent("home", 1, outlook=outlook)
    held["gauges"] |= {"stuck": 1.0, "conservative_recent": 1.0}
    held["counters"] |= {"learned": 0, "baseline": held["counters"]["decisions"]}
    site[1].summary = canned.summary(agents=[held])
    site[1].history = {"t": [], "agents": {}}
    with show(chromium, site) as seen:
        assert words(seen)[2] == "! Stuck"
        assert f"home: {outlook}" in seen.page.locator("#answers").inner_text()
        seen.page.get_by_role("button", name="Why is home conservative?").click()
        assert outlook in seen.page.locator("#why").inner_text()
        del held["gauges"]["stuck"]
        site[1].summary = canned.summary(agents=[held | {"outlook": ""}])
        seen.page.get_by_text("Too early to say").wait_for(state="attached")


def test_pause_asks_for_a_reason_and_keeps_the_focus(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    with show(chromium, site) as seen:
        seen.page.get_by_role("button", name="Pause learning").click()
        seen.page.locator("#ask-go").click()
        assert site[1].posted == []  # a reason is required
        seen.page.fill("#reason", "maintenance")
        seen.page.locator("#ask-go").click()
        seen.page.locator("#mode", has_text="PAUSED").wait_for()
        assert site[1].posted == [("/v1/spaces/films/pause", {"reason": "maintenance"})]
        assert seen.page.locator("#ask[open]").count() == 0
        seen.page.get_by_role("button", name="Resume learning").click()
        seen.page.locator("#ask-go").click()
        seen.page.locator("#mode", has_text="RUNNING").wait_for()
        seen.page.get_by_role("button", name="Why is mail").focus()
        seen.page.wait_for_timeout(5000)  # two polls
        assert seen.page.evaluate("document.activeElement.dataset.key") == "why-mail"


def test_only_an_admin_can_pause(chromium: Any, site: tuple[str, canned.Answers]) -> None:
    site[1].role = "viewer"
    with show(chromium, site) as seen:
        assert seen.page.locator("#switch").is_hidden()


def test_without_a_token_the_page_asks_for_one(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    with opened(chromium, site[0]) as seen:
        seen.page.wait_for_selector("#login:not([hidden])")
        seen.page.fill("#token", "gb_wrong_one")
        seen.page.get_by_role("button", name="Open").click()
        seen.page.locator("#login-error", has_text="token").wait_for()
        seen.errors.clear()  # the browser logs every 401
        seen.page.fill("#token", canned.TOKEN)
        seen.page.get_by_role("button", name="Open").click()
        seen.page.wait_for_selector("#main:not([hidden])")
        seen.page.reload()
        seen.page.wait_for_selector("#main:not([hidden])")  # kept for this tab


def test_no_space_and_no_agent_say_what_to_do(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    site[1].spaces = []
    with show(chromium, site) as seen:
        assert "guardband space create" in seen.page.locator("#empty").inner_text()
        site[1].spaces = [{"space": "films"}]
        site[1].summary = canned.summary(
            agents=[], epochs=[], events=[], theta=None, epoch=0, epoch_age_s=None
        )
        site[1].history = {"t": [], "agents": {}}
        seen.page.wait_for_selector("#main:not([hidden])")
        text = seen.page.locator("#agents").inner_text()
        assert "guardband token create --space films" in text
        assert seen.page.locator("#charts").is_hidden()


def test_several_spaces_can_be_chosen(chromium: Any, site: tuple[str, canned.Answers]) -> None:
    site[1].spaces = [{"space": "films"}, {"space": "songs"}]
    with show(chromium, site) as seen:
        asked: list[str] = []
        seen.page.on("request", lambda request: asked.append(request.url))
        seen.page.select_option("#space", "songs")
        seen.page.wait_for_timeout(500)
        assert any("/v1/spaces/songs/summary" in url for url in asked)
        assert seen.page.url.endswith("#space=songs")


def test_names_are_text(chromium: Any, site: tuple[str, canned.Answers]) -> None:
    name = "<img src=x onerror=alert(1)>"
    site[1].summary = canned.summary(agents=[canned.agent(name, 1, why=name)])
    with show(chromium, site) as seen:
        assert name in seen.page.locator("#agents").inner_text()
        assert seen.page.locator("#agents img").count() == 0


def test_a_coordinator_that_is_gone(chromium: Any, site: tuple[str, canned.Answers]) -> None:
    with show(chromium, site) as seen:
        seen.page.route("**/v1/**", lambda route: route.abort())
        seen.page.wait_for_selector("#trouble:not([hidden])")
        assert "does not answer" in seen.page.locator("#trouble").inner_text()
        seen.page.unroute("**/v1/**")
        seen.page.wait_for_selector("#trouble", state="hidden")
        seen.errors.clear()  # the browser logs what failed


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", WIDTHS, ids=str)
def test_fits_from_a_phone_to_a_wall(
    chromium: Any, site: tuple[str, canned.Answers], size: tuple[int, int], scheme: str
) -> None:
    many = [canned.agent(f"surface-with-a-long-name-{i}", i) for i in range(1, 13)]
    many[1] |= {"state": "stale", "lease_s": 64_800.0}
    site[1].summary = canned.summary(alerts=canned.ALERTS, agents=many)
    site[1].history = canned.history(tuple(a["task"] for a in many))
    with show(chromium, site, size=size, scheme=scheme) as seen:
        assert overflow(seen.page) == 0
        dark = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(v) for v in dark[4:-1].split(",")) < 150) == (scheme == "dark")
        letters = seen.page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
        assert letters >= (28 if size[0] == 3840 else 15)
        seen.page.get_by_role("button", name="Why is surface-with-a-long-name-2 ").click()
        assert overflow(seen.page) == 0


def test_figures_that_come_only_with_uploads_are_dashes(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    """Where uploads have a smallest size, reports have counters and nothing else at first."""
    bare = {"sums": {}, "gauges": {"pending": 3}, "theta": [], "halfwidth": []}
    bare |= {"lead_mean": None, "lead_halfwidth": None, "heterogeneity": None}
    config = canned.summary()["config"] | {"sync": {"min_batch": 20}}
    site[1].summary = canned.summary(
        agents=[canned.agent("home", 1, **bare)],
        config=config,
        theta=None,
        lead_mean=None,
        lead_halfwidth=None,
    )
    site[1].history = canned.history(("home",))
    gone = ("reward_mean", "floor_mean", "margin_min", "margin_p05", "beta")
    site[1].history["agents"]["home"] |= {name: [None] * 61 for name in gone}
    with show(chromium, site) as seen:
        assert words(seen)[:3] == ["✓ Yes", "… Not known", "✓ Yes"]
        assert "With the next upload." in seen.page.locator("#answers").inner_text()
        row = seen.page.locator("#agents tbody tr")
        cells = {
            name: row.locator(f"td[data-name='{name}']") for name in ("violations", "least margin")
        }
        assert {name: cell.inner_text().strip() for name, cell in cells.items()} == {
            "violations": "–",
            "least margin": "–",
        }
        seen.page.get_by_role("button", name="Why is home conservative?").click()
        text = seen.page.locator("#why").inner_text()
        assert "NaN" not in text + seen.page.locator("#main").inner_text()
        assert "undefined" not in text + seen.page.locator("#main").inner_text()


def test_violations_and_what_the_gate_needs(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    gauges = {"margin_min": -0.012, "own_n": 100, "foreign_n": 300}
    gauges |= {"lambda_min": 2.0, "lambda_required": 5.0}
    site[1].summary = canned.summary(agents=[canned.agent("home", 1, gauges=gauges)])
    with show(chromium, site) as seen:
        cell = seen.page.locator("#agents td[data-name='violations']")
        assert cell.inner_text().strip() == "≥ 1"
        assert "error budget used 72 %" in seen.page.locator("#facts").inner_text()
        seen.page.get_by_role("button", name="Why is home conservative?").click()
        assert "about 600 observations" in seen.page.locator("#why").inner_text()


def test_what_has_not_started_says_when_it_will(
    chromium: Any, site: tuple[str, canned.Answers]
) -> None:
    waiting = canned.agent("home", 1, counters={"decisions": 12, "baseline": 12}, n=0, sums={})
    waiting["gauges"] = {"pending": 12.0, "counts_at": canned.NOW + 540.0}
    site[1].summary = canned.summary(agents=[waiting])
    site[1].history = {"t": [], "agents": {}}
    with show(chromium, site, size=(360, 740)) as seen:
        assert words(seen)[2] == "… Not started"
        said = "not started: 0 counted, the first counts at 02:22:20 UTC (in 9 min)"
        assert said in seen.page.locator("#agents").inner_text()
        assert overflow(seen.page) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_done_with_the_keyboard(
    chromium: Any, site: tuple[str, canned.Answers], scheme: str
) -> None:
    site[1].summary = canned.summary(alerts=[canned.ALERTS[1]])
    with show(chromium, site, size=(360, 740), scheme=scheme) as seen:
        page = seen.page
        press = page.keyboard.press
        reached = []
        for _ in range(12):  # from the top, in the order of the page, and always to be seen
            press("Tab")
            reached.append(page.evaluate("document.activeElement.innerText.trim()"))
            style = "getComputedStyle(document.activeElement)"
            assert page.evaluate(f"{style}.outlineStyle") == "solid", reached
            assert page.evaluate(f"parseFloat({style}.outlineWidth)") >= 2
            if "Why?" in reached:
                break
        assert [reached[0].split()[-2:], reached[1]] == [["Pause", "learning"], "Acknowledge"]
        press("Enter")
        page.wait_for_selector("#why[open]")
        press("Escape")
        assert page.evaluate("document.activeElement.innerText") == "Why?"  # where one was
        for _ in reached[1:]:
            press("Shift+Tab")
        press("Enter")
        page.wait_for_selector("#ask[open]")
        page.keyboard.type("by hand")
        press("Enter")
        page.locator("#mode", has_text="PAUSED").wait_for()
    assert site[1].posted == [("/v1/spaces/films/pause", {"reason": "by hand"})]
