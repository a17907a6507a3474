// Forms with data-order: their fields go as JSON to the daemon's API, and its words are shown in the form's <output>.
//
//   action, data-method   where to; "POST" without data-method
//   data-type             of a field: "number" or "boolean"; a text without it
//   data-warning, data-question   of a button: a dialog asks first, and names what is lost
//   data-done             words for an answer that has none
//   data-see              where to look when no answer came
//   data-result           the <output> that keeps the words of an accepted order, where the form itself may vanish by it
//
// A field named "by" is who gives the order; the name that was given last is kept in the browser.

import { confirmed, say, send } from "./answers.js";

const NAME = "orchestrator.by";

function read(form, button) {
  const body = {};
  for (const [name, value] of new FormData(form, button)) {
    const field = form.elements[name];
    const type = field?.dataset?.type;
    body[name] = type === "number" ? Number(value) : type === "boolean" ? true : value;
  }
  if ("by" in body) body.by = (body.by || localStorage.getItem(NAME) || "somebody at the board").slice(0, 80);
  return body;
}

async function order(form, button) {
  const output = form.querySelector("output");
  const { warning, question } = button?.dataset ?? {};
  if (warning && !await confirmed(question, warning, button.textContent.trim())) return;
  const method = form.dataset.method || "POST";
  const body = method === "DELETE" ? {} : { body: JSON.stringify(read(form, button)), headers: { "content-type": "application/json" } };
  const buttons = [...form.querySelectorAll("button")];
  for (const one of buttons) one.disabled = true;
  output.focus();
  const result = await send(output, form.action, { method, ...body }, { done: form.dataset.done, see: form.dataset.see });
  for (const one of buttons) one.disabled = false;
  if (!result?.good) {
    output.focus();
    return;
  }
  const kept = form.dataset.result ? document.querySelector(form.dataset.result) : output;
  if (kept !== output) kept.replaceChildren(...output.childNodes);
  kept.dataset.state = "done";
  kept.focus();
  // What was sent is no longer a draft: the page may show what came of it.
  for (const field of form.querySelectorAll("textarea, input")) field.defaultValue = field.value;
  document.dispatchEvent(new CustomEvent("ordered"));
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-order]")) return;
  event.preventDefault();
  if (event.target.dataset.busy) return;
  event.target.dataset.busy = "yes";
  order(event.target, event.submitter).finally(() => { delete event.target.dataset.busy; });
});

// ---- who gives the orders

document.addEventListener("change", (event) => {
  if (event.target.name === "by") localStorage.setItem(NAME, event.target.value.trim());
});

function fillNames() {
  for (const field of document.querySelectorAll("input[name=by]:not([type=hidden])")) {
    if (!field.value) field.value = field.defaultValue = localStorage.getItem(NAME) || "";
  }
}

// ---- a question that somebody else has answered meanwhile: what was typed stays, and says why it cannot be sent

let seen = document.getElementById("gate-state")?.dataset.gate;

function closeAnswered() {
  fillNames();
  const state = document.getElementById("gate-state");
  if (!state) return;
  const open = state.dataset.gate;
  if (open !== seen) document.getElementById("gate-news").textContent = state.querySelector(".latest")?.textContent ?? "";
  seen = open;
  for (const form of document.querySelectorAll("form[data-order]")) {
    const gate = form.elements.gate?.value;
    if (gate === undefined || gate === open || form.dataset.closed || form.dataset.busy) continue;
    form.dataset.closed = "yes";
    for (const one of form.querySelectorAll(".choices, button")) one.hidden = true;
    say(form.querySelector("output"), "refused", `Question ${gate} is no longer open; the top of the page says why. What you typed is kept here to be copied.`);
  }
}

document.addEventListener("refreshed", closeAnswered);
fillNames();
