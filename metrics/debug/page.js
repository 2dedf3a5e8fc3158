"use strict";
(() => {
  const main = document.querySelector("main"), said = document.getElementById("said"), pause = document.getElementById("pause");
  // The first format wins. The rest of the query is passed on byte for byte.
  const source = "?format=fragment&" + location.search.slice(1);
  let paused = false, underWay = false, timer = 0;

  const live = () => document.getElementById("live");
  const later = () => {
    clearTimeout(timer);
    if (!paused) timer = setTimeout(refresh, Number(document.getElementById("pace").dataset.refreshMs));
  };
  // A refresh would clear a selection that the user is about to copy.
  const reading = () => {
    const marked = getSelection();
    return marked !== null && !marked.isCollapsed && main.contains(marked.anchorNode);
  };
  const show = (text) => {
    const at = main.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    main.innerHTML = text; // escaped by the server, and no script in it could run
    if (at !== null) [...main.querySelectorAll("a")].find((a) => a.getAttribute("href") === at)?.focus({preventScroll: true});
    document.title = `${live().dataset.held} held, ${live().dataset.waiting} waiting – Anteroom`;
  };

  const notify = (text, old) => {
    said.textContent = text;
    main.classList.toggle("old", old);
  };

  async function refresh() {
    if (underWay) return;
    if (document.hidden || reading()) return later();
    underWay = true;
    try {
      const answer = await fetch(source, {cache: "no-store", signal: AbortSignal.timeout(15000)});
      const text = await answer.text();
      if (!answer.ok || !text.startsWith('<div id="live"')) throw new Error(`status ${answer.status}`);
      if (!paused) notify("", false);
      if (!paused && !reading()) show(text);
    } catch (error) {
      if (!paused) notify(`No answer since ${live().dataset.at} UTC: this data is out of date.`, true);
    }
    underWay = false;
    later();
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    notify(paused ? `Paused at ${live().dataset.at} UTC.` : "", false);
    if (paused) clearTimeout(timer);
    else refresh();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) refresh(); });
  later();
})();
