"use strict";
/* What the console does in the browser: links and forms change #main in place, single keys press what is marked with
   data-key, and a few small helps. Without this file every link and form still works. */
(() => {
  const PAUSE_AFTER_CHANGE = 350; // milliseconds in which no key decides on what has just appeared
  let changedAt = 0;
  let goTo = false;
  let busy = 0;
  let leftAt = null; // the row of a table whose form the next swap takes away

  const main = () => document.getElementById("main");
  const keysOff = () => {
    try { return localStorage.getItem("memory-console-keys") === "off"; } catch { return false; }
  };

  // On a phone the pages stand in one line that is wider than the screen: the one that is shown is in sight.
  function showWhere() {
    const here = document.querySelector("#nav [aria-current]");
    const nav = document.getElementById("nav");
    if (here) nav.scrollLeft += here.getBoundingClientRect().left - nav.getBoundingClientRect().left - (nav.clientWidth - here.clientWidth) / 2;
  }

  // Of what stands in a row of a table: the table's number on the page, and the row's in it.
  function placeOf(element) {
    const row = element.closest("main tbody tr");
    return row && { table: tables().indexOf(row.closest("table")), row: row.sectionRowIndex };
  }
  const tables = () => [...main().querySelectorAll("table")];

  // Who decides row by row goes on with the row that is there now. Its heading, no button: a key that is still held down
  // would press that.
  function focusRow(place) {
    const rows = tables()[place.table]?.tBodies[0]?.rows;
    const heading = rows?.length && rows[Math.min(place.row, rows.length - 1)].querySelector("th");
    if (!heading) return false;
    heading.tabIndex = -1;
    heading.focus();
    return true;
  }

  function settled() {
    changedAt = performance.now();
    showWhere();
    if (leftAt && focusRow(leftAt)) return;
    const first = main().querySelector("[data-focus-first]") || main().querySelector("[data-focus]") || main().querySelector("h1");
    if (first) {
      if (!first.hasAttribute("tabindex") && first.tagName !== "TEXTAREA" && first.tagName !== "INPUT") first.tabIndex = -1;
      first.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    showWhere();
    const box = document.getElementById("keys-off");
    box.checked = keysOff();
    box.addEventListener("change", () => {
      try { localStorage.setItem("memory-console-keys", box.checked ? "off" : "on"); } catch { /* this window only */ }
    });
  });
  document.addEventListener("htmx:beforeRequest", (event) => { if (!event.detail.elt.matches("[data-live]")) busy += 1; });
  document.addEventListener("htmx:afterRequest", (event) => { if (!event.detail.elt.matches("[data-live]")) busy = Math.max(0, busy - 1); });
  document.addEventListener("htmx:afterSettle", (event) => {
    const live = event.detail.requestConfig && event.detail.requestConfig.elt.matches("[data-live]");
    if (event.detail.target && event.detail.target.id === "main" && !live) settled();
  });
  function tell(problem) {
    const line = document.createElement("p");
    line.className = "said problem";
    line.textContent = problem;
    document.getElementById("said").replaceChildren(line);
  }
  document.addEventListener("htmx:sendError", () => tell("The console does not answer: is `memory console` still running?"));
  // A window that is not signed in any more, or to another console, keeps what was typed in it.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const answer = new DOMParser().parseFromString(event.detail.serverResponse || "", "text/html");
    const refusal = answer.querySelector("main.refused [role=alert]");
    const from = event.detail.requestConfig.elt;
    leftAt = from.matches("form") ? placeOf(from) : null;
    if (!refusal) return;
    event.detail.shouldSwap = false;
    tell(refusal.textContent);
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-open], [data-close]");
    if (!button) return;
    const dialog = document.getElementById(button.dataset.open || button.dataset.close);
    if (button.dataset.open) dialog.showModal(); else dialog.close();
  });

  // The second click of a double click must not decide on what has just taken the first one's place.
  document.addEventListener("click", (event) => {
    const isPress = event.isTrusted && event.detail > 0 && changedAt > 0 && performance.now() - changedAt < PAUSE_AFTER_CHANGE;
    if (isPress && event.target.closest("main button[type=submit]")) { event.preventDefault(); event.stopImmediatePropagation(); }
  }, true);

  // No key leaves a text that was changed and not sent.
  const isUnsent = () => [...document.querySelectorAll("main textarea")].some((one) => one.value !== one.defaultValue);

  const typing = (element) => element.matches("input:not([type=checkbox]):not([type=radio]):not([type=hidden]), textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const field = event.target instanceof Element && typing(event.target);
    if (event.key === "Escape" && field) { event.target.blur(); event.preventDefault(); return; }
    if (field || keysOff() || isUnsent() || document.querySelector("dialog[open]")) return;
    // A key that is held down, or pressed before the last answer was seen, must not decide on the next one.
    if (event.repeat || busy > 0 || performance.now() - changedAt < PAUSE_AFTER_CHANGE) {
      if (event.key.length === 1 && find(event.key)) event.preventDefault();
      return;
    }
    if (goTo) {
      goTo = false;
      const page = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (page) { event.preventDefault(); page.click(); }
      return;
    }
    if (event.key === "g") { goTo = true; setTimeout(() => { goTo = false; }, 1500); return; }
    const found = find(event.key);
    if (!found) return;
    event.preventDefault();
    if (found.matches("input, textarea, select")) { found.focus(); if (found.select) found.select(); } else found.click();
  });

  function find(key) {
    const name = CSS.escape(key);
    const inside = [...document.querySelectorAll(`[data-key="${name}"], [data-key2="${name}"]`)];
    return inside.find((element) => element.checkVisibility() && !element.disabled);
  }
})();
