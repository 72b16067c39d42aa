// Tabs that the arrow keys move through; the one that is shown stands in the address.

import { all } from "../core/dom.js";

/** Bring a tab list to life; `onShow` hears the name of each tab that comes to be shown. */
export function tabs(list, { onShow = () => {} } = {}) {
  const every = all("[role=tab]", list);
  const first = every[0];
  let shownTab = null;

  const offeredTabs = () => every.filter((tab) => !tab.hidden);
  const tabNamed = (name) => offeredTabs().find((tab) => tab.dataset.tab === name);
  const inAddress = () => tabNamed(location.hash.slice(1)) ?? first;

  function show(tab) {
    if (tab === shownTab) return;
    shownTab = tab;
    for (const each of every) {
      const isChosen = each === tab;
      each.setAttribute("aria-selected", String(isChosen));
      each.tabIndex = isChosen ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !isChosen;
    }
    onShow(tab.dataset.tab);
  }

  function choose(tab) {
    show(tab);
    // Put in place of the old address: going back leaves the page, and does not walk through its tabs.
    history.replaceState(null, "", tab === first ? location.pathname + location.search : `#${tab.dataset.tab}`);
  }

  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) choose(tab);
  });
  list.addEventListener("keydown", (event) => {
    const there = offeredTabs();
    const next = {
      ArrowRight: (at) => (at + 1) % there.length,
      ArrowLeft: (at) => (at + there.length - 1) % there.length,
      Home: () => 0,
      End: () => there.length - 1,
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const tab = there[next(there.indexOf(shownTab))];
    tab.focus();
    choose(tab);
  });
  addEventListener("hashchange", () => {
    // A link on the page, such as the number of failed items, leads to a tab.
    const tab = inAddress();
    show(tab);
    if (location.hash.slice(1) === tab.dataset.tab) tab.focus();
  });

  return {
    /** Begin with the tab that the address names. */
    begin: () => show(inAddress()),
    current: () => shownTab?.dataset.tab ?? null,
    /** Offer a tab, or take it away; whoever is on one that goes is led to the first. */
    offer(name, there) {
      const tab = every.find((each) => each.dataset.tab === name);
      if (tab.hidden === !there) return;
      tab.hidden = !there;
      if (!there && tab === shownTab) choose(first);
      if (there && shownTab && location.hash.slice(1) === name) show(tab);
    },
  };
}
