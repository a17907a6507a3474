// What the daemon said to a request, shown in an <output>: its sentence, and its findings as a list. Texts only.

export function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function now() {
  return new Date().toLocaleTimeString([], { hour12: false });
}

export function say(output, state, text) {
  output.dataset.state = state;
  output.replaceChildren(element("p", text, "said"));
}

// Findings as the daemon's JSON has them, each with its place and what to do about it.
export function listFindings(findings) {
  const list = element("ul", "", "findings");
  for (const one of findings) {
    const item = element("li", "", `severity-${one.severity}`);
    const { file, line, column, story, task, field } = one.where ?? {};
    const place = [file && line ? `${file}:${line}` : file || (line && `line ${line}`), column && `column ${column}`, story, task, field];
    item.append(element("span", one.severity, "badge"), " ", element("code", one.code), " ");
    const where = place.filter(Boolean).join(" ");
    if (where) item.append(element("span", where, "muted said"), " ");
    item.append(element("span", one.message, "said"));
    if (one.fix) item.append(element("p", `To do: ${one.fix}`, "said muted"));
    list.append(item);
  }
  return list;
}

// Sends, and shows how that went: sent, then done or refused in the daemon's words. Nothing is assumed before.
// Returns { good, told }, or null when no answer came. `see` says where to look whether it counted.
export async function send(output, address, options, { done = "Done.", see = "Load this page again: it shows what counts." } = {}) {
  say(output, "sent", `Sent at ${now()} …`);
  let answer, told;
  try {
    answer = await fetch(address, { credentials: "same-origin", redirect: "error", ...options });
    const text = await answer.text();
    told = text ? JSON.parse(text) : {};
  } catch {
    const why = answer ? `The answer (${answer.status}) could not be read` : "The connection ended before an answer came";
    say(output, "unknown", `${why}: it is not known whether this counted. ${see}`);
    return null;
  }
  const good = answer.ok;
  const sentence = told.message ?? told.error ?? (good ? done : `The daemon refused it with status ${answer.status}.`);
  say(output, good ? "done" : "refused", `${good ? "Done" : "Refused"} at ${now()}: ${sentence}`);
  const findings = told.findings ?? told.warnings ?? [];
  if (findings.length) output.append(listFindings(findings));
  if (answer.status === 401) {
    const link = element("a", "Log in in another tab");
    Object.assign(link, { href: "/login", target: "_blank", rel: "noopener" });
    const told = element("p", ", then send this again: what you typed stays here.");
    told.prepend(link);
    output.append(told);
  }
  return { good, told };
}

// Asks once, in a dialog that names what is lost; the dialog of the browser itself returns focus to the button.
export function confirmed(question, warning, word) {
  const dialog = document.createElement("dialog");
  const heading = element("h2", question);
  const text = element("p", warning, "said");
  heading.id = "confirm-question";
  text.id = "confirm-warning";
  dialog.setAttribute("aria-labelledby", heading.id);
  dialog.setAttribute("aria-describedby", text.id);
  const form = document.createElement("form");
  form.method = "dialog";
  const yes = element("button", word, "button danger");
  const no = element("button", "Leave it as it is", "button");
  yes.value = "yes";
  no.value = "no";
  no.autofocus = true;
  form.append(no, " ", yes);
  dialog.append(heading, text, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((settle) => {
    dialog.addEventListener("close", () => {
      settle(dialog.returnValue === "yes");
      dialog.remove();
    });
  });
}
