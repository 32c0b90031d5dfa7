"use strict";
// The page works without this script: it then shows what was there when it was loaded. The script adds what is new.
(() => {
  const maxRows = 300;
  const place = document.querySelector("[data-events]");
  if (!place?.dataset.events) return;
  const connection = document.getElementById("connection");
  const pause = document.getElementById("pause");
  const notice = document.getElementById("notice");
  const state = document.getElementById("state");
  const url = new URL(place.dataset.events, document.baseURI);
  let source;
  let retry;

  const show = (text, kind) => {
    connection.hidden = false;
    connection.textContent = text;
    connection.className = "badge " + kind;
  };
  const shownEvents = (handle) => (event) => {
    if (event.lastEventId) url.searchParams.set("after", event.lastEventId);
    handle(event.data);
  };
  // All texts of others are escaped by the server. Neither a script nor a handler can be part of what is added: the
  // content security policy of the page forbids both.
  const nodesOf = (markup) => {
    const template = document.createElement("template");
    template.innerHTML = markup;
    return template.content;
  };
  const replaceContent = (element, markup) => {
    const open = [...element.querySelectorAll("details")].map((each) => each.open);
    element.replaceChildren(nodesOf(markup));
    if (open.length && element.querySelectorAll("details").length === open.length) {
      element.querySelectorAll("details").forEach((each, i) => { each.open = open[i]; });
    }
  };

  const addRows = (data) => {
    document.getElementById("nothing")?.remove();
    const rows = nodesOf(data);
    for (const row of rows.children) row.classList.add("new");
    place.tHead.after(rows);
    while (place.tBodies.length > maxRows) place.tBodies[place.tBodies.length - 1].remove();
  };

  const connect = () => {
    source = new EventSource(url);
    source.onopen = () => show("live", "good");
    source.onerror = () => {
      show("connecting", "");
      if (source.readyState === EventSource.CLOSED) { // the browser has given up
        clearTimeout(retry);
        retry = setTimeout(connect, 2000);
      }
    };
    source.addEventListener("rows", shownEvents(addRows));
    source.addEventListener("state", shownEvents((data) => { if (state) replaceContent(state, data); }));
    source.addEventListener("story", shownEvents((data) => replaceContent(place, data)));
    source.addEventListener("missed", shownEvents((data) => {
      notice.textContent = data
        ? data + " reconciles were dropped before this page could show them."
        : "More reconciles came at once than this page shows.";
    }));
    source.addEventListener("reset", shownEvents(() => {
      notice.textContent = "The program was restarted. What is below the newest rows is of the process before.";
    }));
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    if (source) {
      clearTimeout(retry);
      source.close();
      source = undefined;
      pause.textContent = "Go on";
      show("paused", "");
    } else {
      pause.textContent = "Pause";
      connect();
    }
  });
  connect();
})();
