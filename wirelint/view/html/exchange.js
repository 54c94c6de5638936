/* Parts of the report and of the dashboard: texts from the wire, conversations with their findings, keys, and the theme.
 *
 * The script makes elements and text nodes only. No string becomes HTML: the pages' policies forbid it. A page that uses it
 * fills `rows` and `words`, and defines `exchange(number)`, `message(number)`, `choose(number)` and `refilter()`.
 */
"use strict";

const LATEST = 12; // messages of a history that are shown at once
const LONG = 3000; // characters of a text that are shown at once
const SEVERITIES = ["error", "warning", "info"];

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const list = one("#list");
const selects = all("select[data-filter]");
let rows = [];
let words = []; // of the search

/** Returns an element: `make("p.note.error", {title: "…"}, "text", child)`, with or without attributes, which are set, never
 * parsed. */
function make(kind, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(Boolean));
  return element;
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* ---- text of the wire ---- */

// Invisible characters, and those that change the direction of text: they are shown by their number.
const CONTROL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

function plain(text) {
  const made = [];
  let last = 0;
  for (const found of text.matchAll(CONTROL)) {
    if (found[0] === "\r" && text[found.index + 1] === "\n") continue;
    made.push(text.slice(last, found.index));
    made.push(make("span.control", `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    last = found.index + found[0].length;
  }
  made.push(text.slice(last));
  return made;
}

/** Returns a message of wirelint with its quotations in backticks as code. */
const prose = (text) =>
  text
    .split(/(`[^`]+`)/)
    .flatMap((piece) => (/^`.+`$/s.test(piece) ? [make("code", plain(piece.slice(1, -1)))] : plain(piece)));

/** Returns a line of text with its control characters named, for places without elements. */
const line = (text) =>
  String(text ?? "").replace(CONTROL, (char) => `\\u${char.codePointAt(0).toString(16).padStart(4, "0")}`);

/** Returns the places of the search words in a text, as marks. */
function hits(text) {
  if (!words.length || !text) return [];
  const made = [];
  const lower = lowered(text);
  for (const word of words) {
    for (let at = lower.indexOf(word); at >= 0 && made.length < 200; at = lower.indexOf(word, at + word.length)) {
      made.push({start: at, end: at + word.length, kind: "hit"});
    }
  }
  return made;
}

/** Returns a text in lower case with every character in its place. */
function lowered(text) {
  const lower = text.toLowerCase();
  return lower.length === text.length
    ? lower
    : Array.from(text, (char) => (char.toLowerCase().length === char.length ? char.toLowerCase() : char)).join("");
}

/** Returns a part of a text as nodes, marks as elements; of overlapping marks the first counts. */
function marked(text, marks, from = 0, to = text.length) {
  const made = [];
  let at = from;
  for (const mark of [...marks].sort((a, b) => a.start - b.start)) {
    const start = Math.max(mark.start, at);
    const end = Math.min(mark.end, to);
    if (start >= end) continue;
    made.push(...plain(text.slice(at, start)), make(`mark.${mark.kind}`, plain(text.slice(start, end))));
    at = end;
  }
  made.push(...plain(text.slice(at, to)));
  return made;
}

/** Returns a text of the wire. Of a long text the beginning, the end and the marks are shown, with buttons for the rest. */
function textOf(text, marks = [], kind = "div.said-text") {
  const element = make(kind);
  const everything = [...marks, ...hits(text)];
  if (text.length <= LONG * 1.3) {
    element.append(...marked(text, everything));
    return element;
  }
  const kept = [
    [0, LONG * 0.7],
    [text.length - LONG * 0.2, text.length],
  ];
  for (const mark of everything.slice(0, 12))
    kept.push([mark.start - 200, Math.min(mark.end, mark.start + LONG) + 200]);
  kept.sort((a, b) => a[0] - b[0]);
  let at = 0;
  for (const [wanted, end] of kept) {
    const start = Math.max(Math.floor(wanted), at);
    if (start - at > 0) {
      const from = at;
      const show = (event) => {
        event.stopPropagation();
        gap.replaceWith(...marked(text, everything, from, start));
      };
      const label = `… ${(start - from).toLocaleString()} more characters …`;
      const gap = make("button.more", {type: "button", click: show}, label);
      element.append(gap);
    }
    if (end > start) element.append(...marked(text, everything, start, Math.min(Math.floor(end), text.length)));
    at = Math.max(at, start, Math.min(Math.floor(end), text.length));
  }
  return element;
}

function laidOut(text) {
  if (!text || text.length > 20000 || !/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

/* ---- the conversation ---- */

function partOf(part, marks) {
  const of = (field) => marks.filter((mark) => mark.field === field);
  const label = (field, text) => marked(text, of(field).length ? of(field) : hits(text));
  const name = (otherwise) => label("name", part.name || otherwise);
  const ref = part.id ? make("span.ref", label("id", part.id)) : null;
  const text = () => textOf(part.text ?? "", of("text"));
  const mono = (shown) => textOf(shown ?? "", of("text"), "div.said-text.mono");
  const nice = of("text").length ? null : laidOut(part.text); // indented for reading, unless that moves a mark
  switch (part.kind) {
    case "text":
      return make("div.part", part.text ? text() : make("span.finish", "(empty)"));
    case "reasoning": {
      if (!part.text) return make("div.part.finish", "(encrypted thinking)");
      const open = of("text").length > 0 || hits(part.text).length > 0;
      const summary = make("summary", `thinking · ${part.text.length.toLocaleString()} characters`);
      return make("div.part", make("details.thoughts", {open}, summary, text()));
    }
    case "refusal":
      return make("div.part", make("span.failed", "refusal:"), text());
    case "call": {
      const said = mono(nice?.length > 100 ? nice : part.text);
      return make("div.part.call", make("span.arrow", "→ "), make("span.name", name("(no name)")), ref, said);
    }
    case "result":
      return make(
        "div.part.result",
        make("span.arrow", "← "),
        part.name ? make("span.name.mono", name()) : null,
        ref,
        part.error ? make("span.failed", " error") : null,
        mono(part.text),
      );
    case "tool": {
      const note = plain((part.note ?? "").split("\n", 1)[0].slice(0, 120));
      const summary = make("summary", make("span.name.mono", name("(no name)")), " ", note);
      const schema = textOf(laidOut(part.text) ?? part.text ?? "", [], "div.said-text.mono");
      return make("div.part", make("details.folded", {open: of("text").length > 0}, summary, schema));
    }
    case "rpc":
      return make("div.part", make("span.name.mono", name("")), ref, mono(nice ?? part.text));
    case "hosted":
      return make("div.part.finish", "⇢ ", plain(part.name || "tool"), " (run by the provider)");
    case "hosted-result":
      return make("div.part.finish", "⇠ ", plain(part.name || "result"), " (from the provider)");
    default:
      return make("div.part.finish", "(", plain(part.name || "unknown part"), ")");
  }
}

/** Returns a turn with its findings. */
function turnOf(who, role, parts, findings, extra = "") {
  const said = make("div.said");
  const add = (...children) => said.append(...children.filter(Boolean));
  parts.forEach((part, number) => {
    const here = findings.filter((finding) => finding.at[1] === number);
    const marks = here
      .filter((finding) => finding.mark)
      .map(({mark: [field, start, end], severity}) => ({field, start, end, kind: severity}));
    const element = part.kind ? partOf(part, marks) : make("div.part");
    if (here.length) element.classList.add("found", here[0].severity);
    add(element, notesOf(here));
  });
  add(notesOf(findings.filter((finding) => finding.at[1] === null || finding.at[1] >= parts.length)));
  return make(`div.turn${extra}`, make(`div.who.${role}`, who), said);
}

const notesOf = (findings) => (findings.length ? make("div.notes", findings.map(noteOf)) : null);

function noteOf(finding) {
  const event = finding.event === null ? "" : `event ${finding.event}`;
  const where = [finding.side, finding.pointer, event].filter(Boolean).join(" · ");
  const confidence = finding.confidence === "high" ? "" : ` · ${finding.confidence} confidence`;
  const note = make(`div.note.${finding.severity}`, {tabindex: -1});
  const hasManual = manualOf(finding.code)?.content.childElementCount > 0;
  const opens = {type: "button", title: "The rule's manual", click: () => manual(note, finding.code)};
  note.append(
    make(
      `${hasManual ? "button" : "span"}.code.${finding.severity}`,
      {"data-code": finding.code, ...(hasManual ? opens : {})},
      plain(finding.code),
    ),
    ruleName(finding),
    make("small", `${finding.severity} · ${finding.layer}${confidence}`),
    make("div", prose(finding.message)),
    finding.remedy ? make("div.remedy", prose(finding.remedy)) : "",
    make("div.where", plain(where)),
    finding.again ? make("div.where", plain(finding.again)) : "",
  );
  return note;
}

const manualOf = (code) => all("template[data-manual]").find((item) => item.dataset.manual === code);

/** Returns the name of a finding's rule, as a link if the rule has a page on the web. */
function ruleName(finding) {
  const page = manualOf(finding.code)?.dataset.page;
  const name = plain(finding.name);
  return page ? make("a.rule", {href: page, title: "The rule's page on the web"}, name) : make("span.rule", name);
}

/** Shows the manual of a rule under a finding, or hides it. The live page has addresses of manuals only. */
function manual(note, code, wanted) {
  const there = one(".manual", note);
  if (there || wanted === false) return there?.remove();
  const template = manualOf(code);
  if (template) note.append(make("div.manual", template.content.cloneNode(true)));
}

async function requestOf(data, api) {
  const findings = data.findings.filter((finding) => finding.side === "request" && finding.at);
  const turns = await Promise.all(
    data.request.map(async ([sign, pointer, number, mine]) => ({sign, mine, said: await message(number)})),
  );
  const hidden = [];
  const made = [];
  const talk = turns.filter((turn) => turn.said.role !== "tools").length;
  let seen = 0;
  for (const {sign, mine, said} of turns) {
    const here = mine === null ? [] : findings.filter((finding) => finding.at[0] === mine);
    const tools = said.role === "tools";
    const role = said.parts.some((part) => part.kind === "result") && said.role === "user" ? "tool" : said.role;
    const extra = sign === "+" ? ".sent" : sign === "-" ? ".was" : "";
    const who = api === "mcp" && role === "assistant" ? "client" : role;
    const isFolded = tools && !here.some((finding) => finding.at[1] !== null);
    const element = isFolded
      ? toolsOf(said.parts, here, extra)
      : turnOf(sign === "+" && !tools ? "forwarded" : who, role, said.parts, here, extra);
    seen += tools ? 0 : 1;
    const found =
      here.length || sign !== "=" || (words.length && said.parts.some((part) => hits(part.text ?? "").length));
    if (!tools && !found && talk - seen >= LATEST) hidden.push(element);
    else made.push(...earlier(hidden), element);
  }
  return [...made, ...earlier(hidden)];
}

/** Returns the turn of the declared tools, folded. */
function toolsOf(parts, findings, extra) {
  const names = parts.map((part) => part.name).join(", ");
  const summary = make("summary", plain(`${parts.length} declared: ${names.slice(0, 300)}`));
  const folded = make(
    "details.folded",
    summary,
    parts.map((part) => partOf(part, [])),
  );
  return make(`div.turn${extra}`, make("div.who", "tools"), make("div.said", folded, notesOf(findings)));
}

/** Returns a button in the place of messages that are not shown at first. Empties `hidden`. */
function earlier(hidden) {
  const rest = hidden.splice(0);
  if (rest.length < 3) return rest;
  const button = make(
    "button.more",
    {type: "button", click: () => holderRow.replaceWith(...rest)},
    `… ${rest.length} earlier messages`,
  );
  const holderRow = make("div.turn", make("div.who"), make("div", button));
  return [holderRow];
}

function replyOf(choices, findings, who, extra) {
  return choices.map((choice, number) => {
    const served =
      choice.parts.length > 0 && choice.parts.every((part) => part.kind === "rpc" || part.kind === "result");
    const name = choices.length > 1 ? `${who} ${choice.index}` : who;
    const here = findings.filter((finding) => finding.at[0] === number);
    const element = turnOf(name, "reply", [...choice.parts, {}], here, extra);
    const said = one(".said", element);
    const end = all(".part", said).at(-1);
    end.classList.add("finish");
    if (choice.finish || !served) end.append(...plain(choice.finish ? `■ ${choice.finish}` : "■ no finish reason"));
    return element;
  });
}

function diffOf(lines) {
  const made = [];
  for (let at = 0; at < lines.length; at += 1) {
    const text = lines[at];
    if (/^(---|\+\+\+|@@) ?/.test(text) && !/^(---|\+\+\+)[^ ]/.test(text)) {
      made.push(make("div.place", plain(text)));
    } else if (text[0] === "-" || text[0] === "+") {
      let end = at;
      while (lines[end]?.[0] === "-" && !lines[end].startsWith("--- ")) end += 1;
      let stop = end;
      while (lines[stop]?.[0] === "+" && !lines[stop].startsWith("+++ ")) stop += 1;
      const gone = lines.slice(at, end),
        come = lines.slice(end, stop);
      made.push(
        ...gone.map((item, n) => changed("div.out", item, come[n])),
        ...come.map((item, n) => changed("div.in", item, gone[n])),
      );
      at = Math.max(stop, at + 1) - 1;
    } else {
      made.push(make("div", plain(text)));
    }
  }
  return make("div.diff", {tabindex: 0}, made);
}

/** Returns a line of a diff; the differences from the line that it replaces are marked. */
function changed(kind, text, other) {
  if (other === undefined) return make(kind, plain(text));
  let start = 1,
    end = 0;
  const most = Math.min(text.length, other.length);
  while (start < most && text[start] === other[start]) start += 1;
  while (end < most - start && text.at(-1 - end) === other.at(-1 - end)) end += 1;
  return make(
    kind,
    plain(text.slice(0, start)),
    make("b", plain(text.slice(start, text.length - end))),
    plain(text.slice(text.length - end)),
  );
}

function stripOf(strip) {
  if (!strip || (strip.chunks < 2 && strip.end < 1000)) return null;
  const scale = 1000 / strip.end;
  const most = Math.log2(2 + Math.max(1, ...strip.ticks.map((tick) => tick[1])));
  const svg = draw("svg", {
    viewBox: "0 0 1000 34",
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": "When the chunks of the reply came",
  });
  if (strip.first !== null)
    svg.append(draw("rect", {class: "wait-first", x: 0, y: 0, width: strip.first * scale, height: 34}));
  const track = make("div.track", svg);
  for (const [start, end] of strip.gaps) {
    svg.append(draw("rect", {class: "silence", x: start * scale, y: 0, width: (end - start) * scale, height: 34}));
    const label = make("span.gap", `${time(end - start)} silence`);
    label.style.left = `${(start / strip.end) * 100}%`;
    label.style.width = `${((end - start) / strip.end) * 100}%`;
    track.append(label);
  }
  for (const [at, size] of strip.ticks) {
    const height = 6 + 24 * (Math.log2(2 + size) / most);
    const tick = draw("rect", {class: "tick", x: Math.min(at * scale, 998.2), y: 34 - height, width: 1.8, height});
    const title = draw("title", {});
    title.textContent = `${time(at)}: ${size.toLocaleString()} bytes`;
    tick.append(title);
    svg.append(tick);
  }
  const longest = Math.max(0, ...strip.gaps.map(([start, end]) => end - start));
  const chunks = `${strip.chunks.toLocaleString()} chunk${strip.chunks > 1 ? "s" : ""}`;
  const facts = [
    strip.first !== null && `first byte ${time(strip.first)}`,
    strip.chunks && `${chunks}, ${strip.bytes.toLocaleString()} bytes`,
    longest && `longest silence ${time(longest)}`,
  ];
  return make(
    "div.strip",
    track,
    make("p", make("span", "0"), make("span", facts.filter(Boolean).join(" · ")), make("span", time(strip.end))),
  );
}

function time(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  return milliseconds < 60000
    ? `${(milliseconds / 1000).toFixed(milliseconds < 10000 ? 1 : 0)} s`
    : `${(milliseconds / 60000).toFixed(1)} min`;
}

/** Returns all of an exchange. */
async function bodyOf(number) {
  const data = await exchange(number);
  const row = rows[number];
  data.findings.forEach((finding, count) => (finding.again = row.findings[count]?.again));
  const talk = make("div.talk");
  if (data.request) talk.append(...(await requestOf(data, row.api)));
  const answers = data.findings.filter((finding) => finding.side === "response" && finding.at);
  if (data.reply) talk.append(...replyOf(data.reply, answers, "reply", data.delivered ? ".answer.was" : ".answer"));
  if (data.delivered) talk.append(...replyOf(data.delivered, [], "delivered", ".answer.sent"));
  if (data.delivered?.length === 0)
    talk.append(turnOf("delivered", "reply", [{kind: "text", text: ""}], [], ".answer.sent"));
  for (const [side, text] of data.raw ?? [])
    talk.append(make("div.turn", make("div.who", side), textOf(text, [], "div.said-text.mono")));
  const counts = Object.entries(data.usage ?? {}).map(([name, count]) => `${name} ${count.toLocaleString()}`);
  const remarks = [
    ...(data.notes ?? []),
    row.known,
    data.error,
    data.errorObject && `error object: ${data.errorObject}`,
    row.end !== "complete" && row.end !== "unknown" && `ended: ${row.end}`,
    counts.join(" · "),
  ].filter(Boolean);
  const heads = data.headers.filter(([, fields]) => fields.length);
  const fields = ([name, value]) => [make("dt", plain(name)), make("dd", plain(value))];
  return [
    make("div.wire", plain(`${row.method} ${data.url}`)),
    notesOf(data.findings.filter((finding) => !finding.at)),
    stripOf(data.strip),
    talk,
    remarks.length &&
      make(
        "div.aside.facts",
        remarks.map((text) => make("span", plain(text))),
      ),
    data.fixes.length && make("div.aside", make("h3", "Rewritten"), data.fixes.map(fixOf)),
    data.diff.length && aside("What was changed on the wire", data.diff.length <= 60, diffOf(data.diff)),
    heads.length &&
      aside(
        "Headers",
        false,
        heads.map(([side, pairs]) => [make("h3", side), make("dl.headers", pairs.map(fields))]),
      ),
  ].filter(Boolean);
}

const aside = (title, open, ...children) => make("details.aside", {open}, make("summary", title), children);

function fixOf(fix) {
  const lines = [
    ...(fix.before ? fix.before.split("\n").map((text) => `-${text}`) : []),
    ...(fix.after ? fix.after.split("\n").map((text) => `+${text}`) : []),
  ];
  return make(
    "div.fix",
    make("span.code", plain(fix.code)),
    plain(`${fix.title} (${fix.safety}, ${fix.side}${fix.pointer ? ` ${fix.pointer}` : ""})`),
    lines.length ? diffOf(lines) : null,
  );
}

/* ---- what both pages have: boxes, keys, filters, theme ---- */

const worst = (row) =>
  SEVERITIES.find((severity) => row.findings.some((finding) => finding.severity === severity)) ?? "clean";

/** Returns the head of an exchange's box. `began`: the text of its beginning. `first`: facts before the others. */
function headOf(row, isOpen, click, link, began, ...first) {
  const title = row.title || `${row.method} ${row.path}`;
  const kind = `button.title${row.title ? "" : ".plain"}`;
  return make(
    "div.head",
    {click},
    make(kind, {type: "button", "aria-expanded": String(isOpen)}, marked(title, hits(title))),
    link,
    make(
      "div.facts",
      first,
      row.status !== null && make(`span${row.status >= 400 ? ".bad" : ""}`, String(row.status)),
      row.stream && make("span", "stream"),
      row.duration !== null && make("span", time(row.duration)),
      began && make("span", began),
      row.end !== "complete" && row.end !== "unknown" && make("span.bad", row.end),
      row.rewritten && make("span.fixed", "✎ rewritten"),
      row.known && make("span", plain(row.known)),
    ),
  );
}

/** Returns a finding in a line after `code`, the element with its code. */
function briefOf(finding, code) {
  const head = [make("b", plain(finding.name)), make("small", ` ${finding.layer} `)];
  return make("li", code, make("span.said", {title: line(finding.message)}, head, plain(finding.message)));
}

/** Scrolls to a box, as little as possible; to the beginning of a long one. */
const reveal = (box) => box?.scrollIntoView({block: box.offsetHeight > innerHeight * 0.7 ? "start" : "nearest"});

// A page adds its own.
const KEYS = {
  "/": () => one("#search").focus(),
  t: setTheme,
  "?": () => one("#keys").showModal(),
};

function onKey(event) {
  const {key, target} = event;
  if (event.ctrlKey || event.metaKey || event.altKey || one("#keys").open) return;
  const isSearched = key === "Enter" && target.id === "search";
  if (target.closest("input:not([type=checkbox]), select, textarea") && key !== "Escape" && !isSearched) return;
  if (key === "Enter" && target.closest("button, a, summary") && !target.matches(".fold")) return;
  const action = isSearched ? () => choose(0) : KEYS[key];
  if (!action) return;
  event.preventDefault();
  if (isSearched) target.blur();
  action();
}

function listen() {
  document.addEventListener("keydown", onKey);
  one(".filters").addEventListener("submit", (event) => event.preventDefault());
  for (const select of selects) select.addEventListener("change", refilter);
  one("#more").addEventListener("click", () => {
    one("#more").setAttribute("aria-expanded", one(".filters").classList.toggle("wide"));
  });
  one("#theme").addEventListener("click", setTheme);
  one("#help").addEventListener("click", KEYS["?"]);
}

const THEME = "wirelint-theme";

// Some browsers store nothing for a page that is a file; then the theme is not kept.
function setTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const root = document.documentElement;
  const order = dark ? ["", "light", "dark"] : ["", "dark", "light"];
  const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  try {
    localStorage.setItem(THEME, next);
  } catch {
    /* not kept */
  }
}

/** Applies the theme that was chosen before. */
function restoreTheme() {
  try {
    const theme = localStorage.getItem(THEME);
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  } catch {
    /* not kept */
  }
}
