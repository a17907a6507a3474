// What every page does: it stays live, its clocks run, and it says when the daemon is away.

const RETRY_MS = 2000;
const REFRESH_MS = 300;
const main = document.getElementById("main");
const rendered = new WeakMap(); // what may be replaced → its HTML as the server sent it, before clocks ran in it
const late = new Map(); // id → the newest of what could not be replaced
for (const one of document.querySelectorAll("[data-region], [data-fragment]")) rendered.set(one, one.outerHTML);

// ---- clocks: seconds since a moment, as text

function span(seconds) {
  const s = Math.max(0, Math.round(seconds)), m = Math.floor(s / 60), h = Math.floor(s / 3600), d = Math.floor(s / 86400);
  return d ? `${d} d ${h % 24} h` : h ? `${h} h ${m % 60} m` : m ? `${m} m ${s % 60} s` : `${s} s`;
}

function tick(within = document) {
  const now = Date.now();
  for (const time of within.querySelectorAll("time[data-since]")) {
    const shown = span((now - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== shown) time.textContent = shown;
    if (!time.title) time.title = new Date(time.dateTime).toLocaleString();
  }
}

// Not one by one in the background, and no thousand of them each second: only those that are seen.
setInterval(() => document.hidden || tick(), document.querySelectorAll("time[data-since]").length > 200 ? 5000 : 1000);
tick();

// ---- fragments: whatever our own server rendered replaces the element with its id

function parse(html) {
  return new DOMParser().parseFromString(html, "text/html");
}

function place(card) {
  const before = document.getElementById(card.id);
  const list = document.querySelector(`ul.cards[data-column="${card.dataset.column}"]`);
  if (!list) return;
  const focused = before && before.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  if (before && before.parentElement === list) {
    before.replaceWith(card);
  } else {
    before?.remove();
    const order = Number(card.dataset.order);
    list.insertBefore(card, [...list.children].find((one) => Number(one.dataset.order) > order) ?? null);
    for (const section of document.querySelectorAll(".column")) {
      section.querySelector(".count").textContent = section.querySelectorAll(".card").length;
    }
  }
  if (focused) card.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  tick(card);
}

function onFragment(event) {
  const found = parse(event.data);
  for (const card of found.querySelectorAll("li.card")) place(document.adoptNode(card));
  for (const one of found.querySelectorAll("[data-fragment]")) swap(one);
}


// Replaces what has the id of `next`, where that shows something else and nobody is at work in it.
function swap(next) {
  const before = document.getElementById(next.id);
  late.delete(next.id);  // what is newer counts, also where it is as what is shown
  if (!before || next.outerHTML === rendered.get(before)) return;
  if (isEdited(before)) {
    late.set(next.id, next);
    return;
  }
  const node = document.adoptNode(next);
  rendered.set(node, node.outerHTML);
  for (const one of before.querySelectorAll("details[open][id]")) {
    const again = node.querySelector(`#${CSS.escape(one.id)}`);
    if (again) again.open = true;
  }
  // What the daemon said to an order stays to be read.
  const said = [...before.querySelectorAll("output")], places = [...node.querySelectorAll("output")];
  said.forEach((one, number) => places[number]?.replaceChildren(...one.childNodes));
  const scrolled = [...before.querySelectorAll(".scroll")].map((one) => one.scrollTop);
  const focus = before.contains(document.activeElement) ? document.activeElement : null;
  before.replaceWith(node);
  node.querySelectorAll(".scroll").forEach((one, number) => { one.scrollTop = scrolled[number] ?? 0; });
  if (focus) (node.querySelector(focus.id ? `#${CSS.escape(focus.id)}` : focus.localName) ?? node.querySelector("output, a, button"))?.focus();
  tick(node);
}

// What could not be replaced then is replaced once the order is answered, or the field is left.
function swapLate() {
  setTimeout(() => [...late.values()].forEach(swap));
}
document.addEventListener("ordered", swapLate);
document.addEventListener("focusout", swapLate);

function isEdited(region) {
  const fields = [...region.querySelectorAll("textarea, input:not([type=hidden]), select")];
  return region.querySelector("form[data-busy]") !== null
    || fields.some((one) => one === document.activeElement || (one.defaultValue ?? one.value) !== one.value);
}

// ---- regions: the page is fetched again, and its regions that differ are replaced

let running = false, again = false;

// One at a time: an older page that comes late would replace a newer one, and a slow one be asked for over and over.
async function refresh() {
  if (running) {
    again = true;
    return;
  }
  running = true;
  try {
    do {
      again = false;
      await fetchRegions();
    } while (again);
  } finally {
    running = false;
  }
}

async function fetchRegions() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const html = await answer.text().catch(() => "");  // the daemon may end meanwhile
  const fresh = parse(html);
  for (const one of document.querySelectorAll("[data-region]")) {
    const next = fresh.getElementById(one.id);
    if (next) swap(next);
  }
  document.dispatchEvent(new CustomEvent("refreshed"));
}

let waiting = null;

// Whether one of these changes concerns a region: data-story and data-names (of events) say which ones do.
function isAbout(region, changes) {
  const { story, names } = region.dataset;
  return changes.some((one) => (!story || story === one.story) && (!names || names.split(" ").includes(one.name)));
}

function onChanged(event) {
  const told = JSON.parse(event.data);
  document.dispatchEvent(new CustomEvent("changed", { detail: told }));
  if (!waiting && [...document.querySelectorAll("[data-region]")].some((one) => isAbout(one, told))) {
    waiting = setTimeout(() => { waiting = null; refresh(); }, REFRESH_MS);
  }
}

// The daemon takes a backlog over, or drops it, a moment after it has said so, and no event tells of the latter.
document.addEventListener("ordered", () => setTimeout(refresh, 1000));

// ---- the stream: the browser comes back with the last id by itself; where it gives up, we do

const banner = document.getElementById("connection");

function say(text) {
  banner.textContent = text;
  banner.hidden = !text;
}

let last = main.dataset.after, source = null, retry = 0;

function listen() {
  const own = source = new EventSource(`${main.dataset.events}&after=${last}`);
  const seen = (handle) => (event) => { last = event.lastEventId || last; handle(event); };
  source.addEventListener("open", () => say(""));
  source.addEventListener("fragment", seen(onFragment));
  source.addEventListener("changed", seen(onChanged));
  source.addEventListener("reload", () => location.reload());
  source.addEventListener("error", async () => {
    say("The daemon does not answer: what you see may be old. Trying again …");
    if (own.readyState !== EventSource.CLOSED) return;
    const answer = await fetch("/api/v1/daemon", { method: "HEAD" }).catch(() => null);
    if (answer?.status === 401) location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    if (source === own) retry = setTimeout(listen, RETRY_MS);
  });
}

function pause() {
  source?.close();
  source = null;
  clearTimeout(retry);
}

// A browser holds six connections to a server: tabs in the background leave them to the one that is seen.
function listenWhileSeen() {
  if (document.hidden) pause();
  else if (!source) listen();
}

if (main.dataset.events) {
  listenWhileSeen();
  document.addEventListener("visibilitychange", listenWhileSeen);
  addEventListener("pagehide", pause);
}
addEventListener("pageshow", (event) => event.persisted && location.reload());

// ---- how many questions wait for a person: in the navigation, and in the title for tabs in the background

const QUESTIONS_MS = 15_000;
const OF_QUESTIONS = new Set(["gate_opened", "gate_answered", "gate_settled", "story_finished", "control_settled"]);
const link = document.querySelector("nav a[href='/gates']");

async function countQuestions() {
  const answer = await fetch("/board/questions").catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const { count } = await answer.json();
  link.textContent = count ? `Questions (${count})` : "Questions";
  document.title = (count ? `(${count}) ` : "") + document.title.replace(/^\(\d+\) /, "");
}

if (link) {
  countQuestions();
  setInterval(countQuestions, QUESTIONS_MS);
  document.addEventListener("changed", (event) => event.detail.some((one) => OF_QUESTIONS.has(one.name)) && countQuestions());
}

// ---- find: what is typed hides the cards that lack it

document.addEventListener("input", (event) => {
  const list = event.target.dataset?.find;
  if (!list) return;
  const wanted = event.target.value.trim().toLowerCase();
  for (const one of document.querySelectorAll(list)) one.hidden = !one.textContent.toLowerCase().includes(wanted);
});

// ---- what is typed and not sent is not lost by a slip

addEventListener("beforeunload", (event) => {
  const typed = [...document.querySelectorAll("form[data-order] textarea")].some((one) => one.value !== one.defaultValue);
  if (typed) event.preventDefault();
});
