"""The page as people meet it: in a window and on a phone, dark and light, by keyboard, and without JavaScript."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.web.sizing import EXAMPLE
from tests.browser.chromium import Tab
from tests.web import documents
from tests.web.conftest import Shelf

LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
PAGES = [
    "/", "/d/D-0187", "/d/D-0187/log/1",
    "/d/D-0187/computed", "/history?phase=graph_capture", "/stats", "/explain/budget", "/size", "/size?example=worked",
    "/examples/capture-on-one-of-eight", "/d/D-9999", "/nowhere",
]  # fmt: skip

FOCUSED = "(() => { const a = document.activeElement; return a === document.body ? 'BODY' : a.id || a.name || a.textContent.trim().slice(0, 30) || a.tagName; })()"
OUTLINED = (
    "getComputedStyle(document.activeElement).outlineStyle !== 'none' && getComputedStyle(document.activeElement).outlineWidth !== '0px'"
)
OVERFLOWING = """
[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !e.closest('.scroll, pre, .skip, textarea') && getComputedStyle(e).position !== 'absolute';
}).map(e => e.tagName + '.' + e.className).slice(0, 5)
"""
CONTRAST = """
(() => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const poor = [];
  for (const e of document.querySelectorAll('main *, header *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length) continue;
    const one = light(rgb(getComputedStyle(e).color)), two = light(ground(e));
    const ratio = (Math.max(one, two) + .05) / (Math.min(one, two) + .05);
    if (ratio < 4.5) poor.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)} ${e.textContent.trim().slice(0, 30)}`);
  }
  return poor.slice(0, 5);
})()
"""
UNLABELLED = """
[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
  .filter(e => !(e.labels && e.labels.length) && !e.getAttribute('aria-label')).map(e => e.outerHTML.slice(0, 80))
"""


@pytest.mark.parametrize("path", PAGES)
async def test_nothing_overflows_nothing_complains_and_text_is_readable(tab: Tab, site: str, path: str) -> None:
    expected = 1 if path in ("/d/D-9999", "/nowhere") else 0  # the browser itself notes a 404 of the page that it opens
    for width, theme in LOOKS:
        await tab.look(width, theme)
        await tab.open(site + path)
        assert await tab.run("document.documentElement.scrollWidth") <= width, (path, width)
        assert await tab.run(OVERFLOWING) == [], (path, width)
        assert await tab.run(CONTRAST) == [], (path, theme)
        assert len(tab.complaints) <= expected, tab.complaints
        tab.complaints.clear()
    assert await tab.run(UNLABELLED) == []


@pytest.mark.parametrize("path", ["/d/D-0187", "/stats", "/size?example=worked", "/explain/budget"])
async def test_on_a_phone_what_stood_side_by_side_stands_below(tab: Tab, site: str, path: str) -> None:
    script = "[...document.querySelector('.columns, .reading').children].map(e => e.getBoundingClientRect()).map(b => [Math.round(b.left), Math.round(b.top)])"
    await tab.look(1280, "light")
    await tab.open(site + path)
    (left, _), (right, _) = await tab.run(script)
    assert left < right
    await tab.look(390, "light")
    await tab.open(site + path)
    (left, above), (right, below) = await tab.run(script)
    assert left == right
    assert above < below


async def test_the_page_is_dark_when_the_person_prefers_dark(tab: Tab, site: str) -> None:
    grounds = []
    for theme in ("light", "dark"):
        await tab.look(1280, theme)
        await tab.open(site)
        grounds.append(await tab.run("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(251, 250, 248)", "rgb(20, 24, 26)"]


async def test_a_log_is_pasted_and_diagnosed_by_keyboard_alone(tab: Tab, site: str, shelf: Shelf) -> None:
    await tab.open(site)
    await tab.press("/")
    assert await tab.run(FOCUSED) == "paste", "the slash goes to the box"
    await tab.write("torch.OutOfMemoryError: CUDA out of memory.\n")
    for expected in ("file", "Diagnose"):
        await tab.press("Tab")
        assert await tab.run(FOCUSED) == expected
        assert await tab.run(OUTLINED), "the focus is visible"
    tab.expect_page()
    await tab.press("Enter")
    await tab.arrives()
    assert await tab.run("location.pathname") == "/d/D-0187"
    given = shelf.calls("diagnose")[-1][0][2]
    assert given[0].text.startswith("torch.OutOfMemoryError")
    assert tab.complaints == []


async def test_every_control_of_a_diagnosis_is_reached_by_tab_and_seen(tab: Tab, site: str) -> None:
    await tab.open(site + "/d/D-0187")
    wanted = set(
        await tab.run(
            "[...document.querySelectorAll('main form button, main form input:not([type=hidden]), main textarea')].filter(e => e.checkVisibility()).map(e => e.id || e.name + e.textContent.trim())"
        )
    )
    reached, unseen = set(), []
    for _ in range(150):
        await tab.press("Tab")
        reached.add(await tab.run("(e => e.id || e.name + e.textContent.trim())(document.activeElement)"))
        if not await tab.run(OUTLINED):
            unseen.append(await tab.run(FOCUSED))
    assert wanted <= reached
    assert [name for name in unseen if name not in ("BODY", "main")] == []


async def test_the_first_tab_leads_past_the_navigation(tab: Tab, site: str) -> None:
    await tab.open(site)
    await tab.press("Tab")
    assert await tab.run(FOCUSED) == "Skip to the content"
    await tab.press("Enter")
    assert await tab.run("location.hash") == "#main"


async def test_a_file_is_chosen_and_sent(tab: Tab, site: str, shelf: Shelf, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("first line\nsecond line\n")
    await tab.open(site)
    await tab.choose_file("#file", log)
    tab.expect_page()
    await tab.run("document.querySelector('form.paste button.go').click()")
    await tab.arrives()
    given = shelf.calls("diagnose")[-1][0][2]
    assert (given[0].kind, given[0].name, given[0].text) == ("file", "server.log", "first line\nsecond line\n")


async def test_a_dropped_file_lands_in_the_form(tab: Tab, site: str) -> None:
    await tab.open(site)
    script = """
    (() => {
      const carried = new DataTransfer();
      carried.items.add(new File(['x'], 'dropped.log'));
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: carried, bubbles: true, cancelable: true }));
      return document.querySelector('#file').files[0].name + ' ' + document.activeElement.textContent;
    })()
    """
    assert await tab.run(script) == "dropped.log Diagnose"


async def test_an_empty_paste_is_told_before_it_is_sent(tab: Tab, site: str, shelf: Shelf) -> None:
    await tab.open(site)
    await tab.run("document.querySelector('form.paste button.go').click()")
    assert "nothing to read yet" in await tab.run("document.querySelector('.refused').textContent")
    assert not shelf.calls("diagnose")


async def test_an_outcome_is_one_click_and_leads_to_its_confirmation(tab: Tab, site: str, shelf: Shelf) -> None:
    await tab.look(1280, "light")
    await tab.open(site + "/d/D-0187")
    tab.expect_page()
    await tab.run("document.querySelector('button.fixed').click()")
    await tab.arrives()
    assert shelf.calls("settle")[-1][0][2:] == ("D-0187", "fixed", None)
    assert "Run for an hour." in await tab.run("document.querySelector('.said').textContent")
    assert await tab.run("scrollY === 0 && document.querySelector('.said').getBoundingClientRect().bottom < innerHeight")
    await tab.open(site + "/d/D-0187")
    assert await tab.run("document.querySelector('.said')") is None


async def test_a_figure_leads_to_its_line_in_the_log(tab: Tab, site: str) -> None:
    await tab.look(1280, "light")
    await tab.open(site + "/d/D-0187")
    line = documents.diagnosis()["budgets"][0]["lines"]["kv_cache_bytes"]
    await tab.run(f"document.querySelector('.budget a[href=\"#L{line}\"]').click()")
    assert await tab.run("document.querySelector(':target .why').textContent") == "kv cache"


async def test_the_log_beside_the_verdict_opens_at_the_first_error(tab: Tab, site: str) -> None:
    await tab.look(1280, "light")
    await tab.open(site + "/d/D-0187")
    seen = await tab.run(
        "(() => { const box = document.querySelector('.evidence').getBoundingClientRect(), line = document.querySelector('.log .first').getBoundingClientRect(); return line.top >= box.top && line.top < box.bottom; })()"
    )
    assert seen is True
    high = "(() => { const box = document.querySelector('.evidence'), line = document.querySelector('.log .first'); const far = line.getBoundingClientRect().top - box.getBoundingClientRect().top; return far < 200 || box.scrollTop + box.clientHeight >= box.scrollHeight - 1; })()"
    assert await tab.run(high), "high in it: below the verdict a window shows the upper part of the log alone"
    names = "['.evidence h2', '.evidence h3'].map(name => document.querySelector(name).getBoundingClientRect())"
    hidden = f"(() => {{ const box = document.querySelector('.evidence').getBoundingClientRect(); return {names}.filter(one => one.top < box.top - 1 || one.bottom > box.bottom).length; }})()"
    assert await tab.run(hidden) == 0, "what the log is stands above it, wherever it is scrolled to"


@pytest.mark.parametrize("path", ["/d/D-0187", "/size?example=worked"])
async def test_a_phone_gets_a_budget_picture_that_it_shows_whole(tab: Tab, site: str, path: str) -> None:
    shown = "(() => { const image = document.querySelector('.picture img'), box = image.getBoundingClientRect(); return [image.naturalWidth, box.width <= innerWidth, image.closest('.scroll') === null]; })()"
    for width, natural in ((390, 360), (1280, 900)):
        await tab.look(width, "light")
        await tab.open(site + path)
        assert await tab.run(shown) == [natural, True, True], (path, width)


async def test_on_a_phone_the_answer_below_a_long_form_is_one_press_away(tab: Tab, site: str) -> None:
    shown = "document.querySelector('.below').checkVisibility()"
    await tab.look(1280, "light")
    await tab.open(site + "/size?example=worked")
    assert await tab.run(shown) is False, "in a window the answer stands beside the form"
    await tab.look(390, "light")
    await tab.open(site + "/size?example=worked")
    assert await tab.run(shown) is True
    assert await tab.run("document.querySelector('.below').getBoundingClientRect().bottom < innerHeight")
    assert await tab.run("document.querySelector('.below a').textContent") == "It fits"


@pytest.mark.parametrize("width", [1280, 700, 390])
async def test_no_flag_is_broken_over_two_lines(tab: Tab, site: str, width: int) -> None:
    await tab.look(width, "light")
    for path, least in (("/stats", 1), ("/history", 1), ("/d/D-0187", 2)):
        await tab.open(site + path)
        assert await tab.run("document.querySelectorAll('.flag').length") >= least, path
        assert (
            await tab.run("[...document.querySelectorAll('.flag')].filter(e => e.getClientRects().length > 1).map(e => e.textContent)")
            == []
        )
        assert await tab.run("document.documentElement.scrollWidth") <= width, path


async def test_the_sizing_answer_follows_the_form(tab: Tab, site: str) -> None:
    await tab.open(site + "/size?example=worked")
    assert "46.1 GB" in await tab.run("document.getElementById('answer').textContent")
    script = """
    new Promise(done => {
      new MutationObserver(() => done(document.getElementById('answer').textContent)).observe(document.getElementById('answer'), { childList: true });
      const field = document.getElementById('gpu_memory_utilization');
      field.value = '0.5';
      field.dispatchEvent(new Event('input', { bubbles: true }));
    })
    """
    text = await tab.run(script)
    assert "40 GB" in text, "half of the device"
    assert "12.5 GB" in text, "what is left for the pool"
    assert await tab.run("document.querySelector('.below a').textContent === document.querySelector('.fits').textContent")
    assert tab.complaints == []


async def test_a_pasted_config_puts_computed_beside_measured(tab: Tab, site: str) -> None:
    await tab.look(390, "dark")
    await tab.open(site + "/d/D-0187/computed")
    await tab.run("document.getElementById('config').focus()")
    await tab.write(EXAMPLE.read_text())
    await tab.press("Tab")
    tab.expect_page()
    await tab.press("Enter")
    await tab.arrives()
    assert "62.98 GiB" in await tab.run("document.querySelector('.budget').textContent")
    assert await tab.run("document.documentElement.scrollWidth") <= 390
    assert tab.complaints == []


async def test_it_works_without_javascript(tab: Tab, site: str, shelf: Shelf) -> None:
    await tab.send("Emulation.setScriptExecutionDisabled", value=True)
    await tab.open(site)
    root = (await tab.send("DOM.getDocument"))["root"]["nodeId"]
    box = (await tab.send("DOM.querySelector", nodeId=root, selector="#paste"))["nodeId"]
    await tab.send("DOM.focus", nodeId=box)
    await tab.write("a log\n")
    await tab.press("Tab")
    await tab.press("Tab")
    tab.expect_page()
    await tab.press("Enter")
    await tab.arrives()
    assert shelf.calls("diagnose")[-1][0][2][0].text == "a log\n"


async def test_going_back_brings_back_what_was_typed(tab: Tab, site: str) -> None:
    await tab.open(site)
    await tab.run("document.getElementById('paste').focus()")
    await tab.write("typed before\n")
    await tab.open(site + "/history")
    tab.expect_page()
    await tab.run("history.back()")
    for _ in range(40):
        if await tab.run("location.pathname === '/' && document.readyState === 'complete'"):
            break
        await asyncio.sleep(0.1)
    assert await tab.run("document.getElementById('paste').value") == "typed before\n"


async def test_a_second_tab_leaves_the_form_of_the_first_one_good(tab: Tab, site: str, shelf: Shelf) -> None:
    await tab.open(site)
    await tab.run("window.kept = document.querySelector('[name=token]').value")
    assert await tab.run("fetch('/').then(r => r.text()).then(t => t.includes(window.kept))") is True


async def test_a_page_cannot_run_what_somebody_pasted(tab: Tab, site: str, shelf: Shelf) -> None:
    evil = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"
    shelf.incident = documents.incident(diagnosis=documents.diagnosis(summary=evil, notes=[evil]))
    shelf.incident["contributions"][0]["text"] = evil
    await tab.open(site + "/d/D-0187")
    assert "pwned" not in await tab.run("document.title")
    ran: Any = await tab.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.head.append(s); return window.ran || 0; })()"
    )
    assert ran == 0, "the policy stops what escaping would have missed"


async def test_it_paints_within_300_milliseconds(tab: Tab, site: str) -> None:
    for path in ("/", "/d/D-0187", "/history"):
        paints = [await _first_paint(tab, site + path) for _ in range(5)]
        assert min(paints) < 300, (path, paints)  # the least: what else the machine does is not the page's


async def _first_paint(tab: Tab, url: str) -> float:
    await tab.open(url)
    script = "new Promise(done => new PerformanceObserver(list => done(list.getEntries()[0].startTime)).observe({ type: 'paint', buffered: true }))"
    return float(await tab.run(script))
