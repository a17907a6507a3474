// The page of the log: new lines come over the stream of events, the oldest ones leave.

const MOST_LINES = 2000;
const RETRY_MS = 2000;
const NEAR = 40; // pixels from the end within which the list stays at its end
const log = document.getElementById("log");
const lines = document.getElementById("lines");
const blank = document.getElementById("line");
const button = document.getElementById("follow");
const state = document.getElementById("state");

// ---- a line: every text is set as text, with its control characters as signs (as core/value.py, draw_controls)

const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|\r(?!\n)/g;

function draw(text) {
  return text.replace(CONTROLS, (one) => `[U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

function makeLine(told) {
  const row = blank.content.firstElementChild.cloneNode(true);
  const set = (name, text) => { row.querySelector(name).textContent = draw(text); };
  row.id = `L${told.seq}`;
  row.className = `level-${told.level}`;
  row.querySelector("a").href = `${log.dataset.here}at=${Number(told.seq)}#L${Number(told.seq)}`;
  row.querySelector("time").dateTime = told.timestamp;
  set("time", `${told.timestamp.slice(0, 10)} ${told.timestamp.slice(11, 19)}`);
  set(".level", told.level);
  set(".of", told.task ?? told.story ?? told.sprint ?? "");
  set(".persona", told.persona ?? "");
  set(".message", told.message);
  return row;
}

let waiting = [];

function show() {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
  lines.append(...waiting.slice(-MOST_LINES).map(makeLine));
  waiting = [];
  while (lines.childElementCount > MOST_LINES) lines.firstElementChild.remove();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function onLine(event) {
  // Many lines at once are drawn once; where nobody looks, no frame is drawn, and nothing piles up.
  if (!waiting.length) setTimeout(show, 50);
  waiting.push(JSON.parse(event.data));
  if (waiting.length > MOST_LINES) waiting.shift();
}

// ---- following: the browser comes back with the last id by itself; where it gives up, we do

let source = null;
let last = "";
let retry = 0;

function follow() {
  // The stream knows better than the address where it was.
  const address = new URL(log.dataset.stream, location.href);
  if (last) address.searchParams.set("after", last);
  source = new EventSource(address);
  source.addEventListener("open", () => say("Following: new lines are added at the end."));
  source.addEventListener("log", (event) => { last = event.lastEventId; onLine(event); });
  source.addEventListener("error", async () => {
    const gone = source;
    say("The daemon does not answer: lines may be missing until it does. Trying again …");
    if (gone.readyState !== EventSource.CLOSED) return;
    const answer = await fetch("/api/v1/daemon", { method: "HEAD" }).catch(() => null);
    if (answer?.status === 401) {
      location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    } else if (source === gone) {
      retry = setTimeout(follow, RETRY_MS);
    }
  });
}

function pause() {
  source?.close();
  source = null;
  clearTimeout(retry);
  say("Paused: new lines are kept in the log and come when you resume.");
}

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

if (log.dataset.stream) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const isPaused = source === null;
    button.textContent = isPaused ? "Pause" : "Resume";
    if (isPaused) follow(); else pause();
  });
  // A browser holds six connections to a server: tabs in the background leave them to the one that is seen.
  document.addEventListener("visibilitychange", () => {
    if (button.textContent !== "Pause") return;
    if (document.hidden) pause(); else if (!source) follow();
  });
  log.scrollTop = log.scrollHeight;
  if (!document.hidden) follow();
  addEventListener("pagehide", pause);
} else {
  document.querySelector("tr[aria-current]")?.scrollIntoView({ block: "center" });
}
