// The page "Submit": a file or a text, its dry run, and then the backlog itself. Texts only, no HTML of anybody.

import { element, listFindings, now, say, send } from "./answers.js";

const form = document.getElementById("submit");
const { name, format, file, text } = form.elements;
const [tryIt, submit] = form.querySelectorAll("button");
const output = form.querySelector("output");
const shown = document.getElementById("dry-run");
const limit = Number(form.dataset.limit);
const FORMATS = { csv: "csv", yaml: "yaml", yml: "yaml", json: "json" };
let dropped = null;
let tried = null;  // what the dry run was of: only the same is submitted

function content() {
  return dropped ?? file.files[0] ?? (text.value.trim() ? new Blob([text.value]) : null);
}

// ---- what is chosen

function forget() {
  tried = null;
  submit.disabled = true;
  shown.hidden = true;
}

function take(chosen) {
  forget();
  if (!chosen) return;
  const [, stem, ending] = /^(.*?)(?:\.([^.]*))?$/.exec(chosen.name);
  if (FORMATS[ending?.toLowerCase()]) format.value = FORMATS[ending.toLowerCase()];
  if (!name.dataset.typed) name.value = stem.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(0, 64);
  say(output, "", `${chosen.name}, ${Math.ceil(chosen.size / 1024)} kB`);
}

file.addEventListener("change", () => { dropped = null; take(file.files[0]); });
for (const field of [name, format, text]) field.addEventListener("input", forget);
text.addEventListener("input", () => {
  dropped = null;
  file.value = "";
  const start = text.value.trimStart();
  if (/^[[{]/.test(start)) format.value = "json";
  else if (/^(stories:|- |---)/.test(start)) format.value = "yaml";
  else if (/^[^\n]*,/.test(start)) format.value = "csv";
});
name.addEventListener("input", () => { name.dataset.typed = "yes"; });

let depth = 0;
function mark(step) {
  depth = step ? Math.max(0, depth + step) : 0;
  document.getElementById("drop").classList.toggle("over", depth > 0);
}
document.addEventListener("dragenter", () => mark(1));
document.addEventListener("dragleave", () => mark(-1));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  mark(0);
  const [one, ...more] = event.dataTransfer.files;
  if (!one) return;
  dropped = one;
  file.value = text.value = "";
  take(one);
  if (more.length) say(output, "refused", `One backlog at a time: ${one.name} is taken, the others are not.`);
  else tryIt.click();
});

// ---- the dry run

function count(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

function* costs(planned) {
  yield ["Calls", `about ${planned.calls.expected.toLocaleString("en")}, at most ${planned.calls.maximal.toLocaleString("en")} (budget.calls_per_story)`];
  const { spending } = planned;
  if (!spending) return;
  const basis = spending.measured ? "in the last sprints" : "on other projects: none here has asked a model yet";
  yield ["Tokens", `about ${spending.input_tokens.toLocaleString("en")} in, ${spending.output_tokens.toLocaleString("en")} out (a call as ${basis})`];
  if (spending.unpriced.length) {
    yield ["Cost", `unknown: no price of ${spending.unpriced.join(", ")}; name it under \`prices\` in config.yaml`];
  } else if (spending.usd !== null) {
    yield ["Cost", `about ${spending.usd.toFixed(2)} USD`];
  }
}

function show(planned) {
  const blocking = planned.problems.filter((one) => one.severity !== "minor");
  const figures = document.createElement("dl");
  figures.className = "figures";
  for (const [title, told] of planned.stories ? costs(planned) : []) figures.append(element("dt", title), element("dd", told, "said"));
  const waves = document.createElement("ol");
  for (const wave of planned.waves) waves.append(element("li", wave.join(", "), "said"));
  const closed = Object.entries(planned.closed ?? {}).map(([row, closer]) => `${row} (by ${closer})`).join(", ");
  shown.replaceChildren(
    element("h2", `${count(planned.stories, "story", "stories")} in ${count(planned.waves.length, "wave", "waves")}`),
    ...(planned.problems.length ? [element("h3", blocking.length ? "What keeps it from being taken" : "What was noticed"), listFindings(planned.problems)] : []),
    figures,
    ...(planned.waves.length ? [element("h3", "Waves"), waves] : []),
    ...(closed ? [element("p", `Done with others: ${closed}`, "said")] : []),
  );
  shown.hidden = false;
  return blocking.length;
}

function refuse(why) {
  say(output, "refused", why);
  output.focus();
}

async function tryOut() {
  const body = content();
  if (!body) return refuse("Choose a file, or paste a text.");
  if (body.size > limit) return refuse(`It has ${Math.ceil(body.size / 1024)} kB; at most ${limit / 1024} kB are taken (serve.body_limit_kb).`);
  const asked = new URLSearchParams({ format: format.value });
  const address = `/api/v1/backlogs/${name.value}?${asked}`;
  asked.set("name", name.value);
  const result = await send(output, `/api/v1/dry-run?${asked}`, { method: "POST", body }, { see: "A dry run keeps nothing: run it again." });
  if (!result?.good) return;
  const good = show(result.told) === 0;
  tried = good ? { address, body } : null;
  const what = good ? "this can be submitted." : "this would be refused; what is to be mended stands below.";
  say(output, good ? "done" : "refused", `Dry run at ${now()}: ${what}`);
}

async function handIn() {
  const result = await send(output, tried.address, { method: "PUT", body: tried.body }, { see: "Load this page again: its list says which backlogs are watched." });
  if (!result?.good) return;
  const { told } = result;
  say(output, "done", `${told.replaced ? "Replaced" : "Submitted"} at ${now()}: ${told.name} is watched, with ${count(told.stories, "story", "stories")}.`);
  if (told.warnings.length) output.append(listFindings(told.warnings));
  forget();
  document.dispatchEvent(new CustomEvent("ordered"));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  tryIt.disabled = submit.disabled = true;
  output.focus();
  await (event.submitter === submit && tried ? handIn() : tryOut());
  output.focus();
  tryIt.disabled = false;
  submit.disabled = !tried;
});
