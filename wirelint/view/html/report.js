/* The page of `wirelint report`.
 *
 * The page holds its data in blocks of compressed JSON (see __init__.py). The script unpacks the index, a row per exchange,
 * at once, and a block when somebody opens or searches an exchange in it. The list consists of batches of boxes: a batch far
 * from the window is emptied and keeps its height, so the page stays small however many exchanges it holds.
 *
 * The script makes elements and text nodes only. No string becomes HTML: the page's policy forbids it.
 */
"use strict";

const BATCH = 40; // boxes in a batch
const NEAR = "1200px"; // how far from the window boxes are made
const LATEST = 12; // messages of a history that are shown at once
const LONG = 3000; // characters of a text that are shown at once
const MOST_BLOCKS = 24; // unpacked blocks that are kept
const SEVERITIES = ["error", "warning", "info"];

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Returns an element: `make("p.note.error", {title: "…"}, "text", child)`. Attributes are set, never parsed. */
function make(kind, attributes = {}, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* ---- data ---- */

async function unpack(element) {
  const packed = element.textContent;
  const bytes = Uint8Array.fromBase64?.(packed) ?? Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

const blocks = all("script.block");
const unpacked = new Map(); // number of a block → promise of it, the latest used last
let rows = [];
let firsts = [];

function block(number) {
  const found = unpacked.get(number) ?? unpack(blocks[number]);
  unpacked.delete(number);
  unpacked.set(number, found);
  if (unpacked.size > MOST_BLOCKS) unpacked.delete(unpacked.keys().next().value);
  return found;
}

/** Returns the block with message (0) or exchange (1) `number`. Of blocks without a message of their own, the last counts. */
function holder(number, which) {
  let low = 0,
    high = firsts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (firsts[middle][which] <= number) low = middle;
    else high = middle - 1;
  }
  return low;
}

async function exchange(number) {
  const home = holder(number, 1);
  return (await block(home)).exchanges[number - firsts[home][1]];
}

async function message(number) {
  const home = holder(number, 0);
  return (await block(home)).messages[number - firsts[home][0]];
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
    made.push(make("span.control", {}, `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    last = found.index + found[0].length;
  }
  made.push(text.slice(last));
  return made;
}

/** Returns a message of wirelint with its quotations in backticks as code. */
const prose = (text) =>
  text
    .split(/(`[^`]+`)/)
    .flatMap((piece) => (/^`.+`$/s.test(piece) ? [make("code", {}, plain(piece.slice(1, -1)))] : plain(piece)));

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
    made.push(...plain(text.slice(at, start)), make(`mark.${mark.kind}`, {}, plain(text.slice(start, end))));
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
      const gap = make(
        "button.more",
        {
          type: "button",
          click: (event) => {
            event.stopPropagation();
            gap.replaceWith(...marked(text, everything, from, start));
          },
        },
        `… ${(start - from).toLocaleString()} more characters …`,
      );
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
  const ref = part.id ? make("span.ref", {}, label("id", part.id)) : null;
  const text = () => textOf(part.text ?? "", of("text"));
  switch (part.kind) {
    case "text":
      return make("div.part", {}, part.text ? text() : make("span.finish", {}, "(empty)"));
    case "reasoning":
      if (!part.text) return make("div.part.finish", {}, "(encrypted thinking)");
      return make(
        "div.part",
        {},
        make(
          "details.thoughts",
          {open: of("text").length > 0 || hits(part.text).length > 0},
          make("summary", {}, `thinking · ${part.text.length.toLocaleString()} characters`),
          text(),
        ),
      );
    case "refusal":
      return make("div.part", {}, make("span.failed", {}, "refusal:"), text());
    case "call": {
      // Arguments are indented for reading unless that moves a mark.
      const nice = of("text").length ? null : laidOut(part.text);
      const shown = nice !== null && nice.length > 100 ? nice : (part.text ?? "");
      return make(
        "div.part.call",
        {},
        make("span.arrow", {}, "→ "),
        make("span.name", {}, label("name", part.name || "(no name)")),
        ref,
        textOf(shown, of("text"), "div.said-text.mono"),
      );
    }
    case "result":
      return make(
        "div.part.result",
        {},
        make("span.arrow", {}, "← "),
        part.name ? make("span.name.mono", {}, label("name", part.name)) : null,
        ref,
        part.error ? make("span.failed", {}, " error") : null,
        textOf(part.text ?? "", of("text"), "div.said-text.mono"),
      );
    case "tool":
      return make(
        "div.part",
        {},
        make(
          "details.folded",
          {open: of("text").length > 0},
          make(
            "summary",
            {},
            make("span.name.mono", {}, label("name", part.name || "(no name)")),
            " ",
            plain((part.note ?? "").split("\n", 1)[0].slice(0, 120)),
          ),
          textOf(laidOut(part.text) ?? part.text ?? "", [], "div.said-text.mono"),
        ),
      );
    case "rpc":
      return make(
        "div.part",
        {},
        make("span.name.mono", {}, label("name", part.name || "")),
        ref,
        textOf(
          of("text").length ? part.text : (laidOut(part.text) ?? part.text ?? ""),
          of("text"),
          "div.said-text.mono",
        ),
      );
    case "hosted":
      return make("div.part.finish", {}, "⇢ ", plain(part.name || "tool"), " (run by the provider)");
    case "hosted-result":
      return make("div.part.finish", {}, "⇠ ", plain(part.name || "result"), " (from the provider)");
    default:
      return make("div.part.finish", {}, "(", plain(part.name || "unknown part"), ")");
  }
}

/** Returns a turn with its findings. */
function turnOf(who, role, parts, findings, extra = "") {
  const said = make("div.said");
  parts.forEach((part, number) => {
    const here = findings.filter((finding) => finding.at[1] === number);
    const marks = here
      .filter((finding) => finding.mark)
      .map(({mark: [field, start, end], severity}) => ({field, start, end, kind: severity}));
    const element = part.kind ? partOf(part, marks) : make("div.part");
    if (here.length) element.classList.add("found", here[0].severity);
    said.append(element);
    if (here.length) said.append(make("div.notes", {}, here.map(noteOf)));
  });
  const rest = findings.filter((finding) => finding.at[1] === null || finding.at[1] >= parts.length);
  if (rest.length) said.append(make("div.notes", {}, rest.map(noteOf)));
  return make(`div.turn${extra}`, {}, make(`div.who.${role}`, {}, who), said);
}

function noteOf(finding) {
  const where = [finding.side, finding.pointer, finding.event === null ? "" : `event ${finding.event}`]
    .filter(Boolean)
    .join(" · ");
  const note = make(`div.note.${finding.severity}`, {tabindex: -1});
  note.append(
    make(
      `button.code.${finding.severity}`,
      {type: "button", title: "The rule's manual", "data-code": finding.code, click: () => manual(note, finding.code)},
      plain(finding.code),
    ),
    ruleName(finding),
    make(
      "small",
      {},
      `${finding.severity} · ${finding.layer}${finding.confidence === "high" ? "" : ` · ${finding.confidence} confidence`}`,
    ),
    make("div", {}, prose(finding.message)),
    finding.remedy ? make("div.remedy", {}, prose(finding.remedy)) : "",
    make("div.where", {}, plain(where)),
    finding.again ? make("div.where", {}, plain(finding.again)) : "",
  );
  return note;
}

const manualOf = (code) => all("template[data-manual]").find((item) => item.dataset.manual === code);

/** Returns the name of a finding's rule, as a link if the rule has a page on the web. */
function ruleName(finding) {
  const page = manualOf(finding.code)?.dataset.page;
  const name = plain(finding.name);
  return page ? make("a.rule", {href: page, title: "The rule's page on the web"}, name) : make("span.rule", {}, name);
}

/** Shows the manual of a rule under a finding, or hides it. */
function manual(note, code, wanted) {
  const there = one(".manual", note);
  if (there || wanted === false) return there?.remove();
  const template = manualOf(code);
  if (template) note.append(make("div.manual", {}, template.content.cloneNode(true)));
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
    let element = turnOf(sign === "+" ? "forwarded" : who, role, said.parts, here, extra);
    if (tools && !here.some((finding) => finding.at[1] !== null)) {
      element = make(
        `div.turn${extra}`,
        {},
        make("div.who", {}, "tools"),
        make(
          "div.said",
          {},
          make(
            "details.folded",
            {},
            make(
              "summary",
              {},
              plain(
                `${said.parts.length} declared: ${said.parts
                  .map((part) => part.name)
                  .join(", ")
                  .slice(0, 300)}`,
              ),
            ),
            said.parts.map((part) => partOf(part, [])),
          ),
        ),
      );
      if (here.length) element.lastChild.append(make("div.notes", {}, here.map(noteOf)));
    } else if (tools) {
      one(".who", element).textContent = "tools";
    }
    seen += tools ? 0 : 1;
    const found =
      here.length || sign !== "=" || (words.length && said.parts.some((part) => hits(part.text ?? "").length));
    if (!tools && !found && talk - seen >= LATEST) hidden.push(element);
    else made.push(...earlier(hidden), element);
  }
  return [...made, ...earlier(hidden)];
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
  const holderRow = make("div.turn", {}, make("div.who", {}), make("div", {}, button));
  return [holderRow];
}

function replyOf(choices, findings, who, extra) {
  return choices.map((choice, number) => {
    const served =
      choice.parts.length > 0 && choice.parts.every((part) => part.kind === "rpc" || part.kind === "result");
    const name = choices.length > 1 ? `${who} ${choice.index}` : who;
    const element = turnOf(
      name,
      "reply",
      [...choice.parts, {}],
      findings.filter((finding) => finding.at[0] === number),
      extra,
    );
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
      made.push(make("div.place", {}, plain(text)));
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
      made.push(make("div", {}, plain(text)));
    }
  }
  return make("div.diff", {tabindex: 0}, made);
}

/** Returns a line of a diff; the differences from the line that it replaces are marked. */
function changed(kind, text, other) {
  if (other === undefined) return make(kind, {}, plain(text));
  let start = 1,
    end = 0;
  const most = Math.min(text.length, other.length);
  while (start < most && text[start] === other[start]) start += 1;
  while (end < most - start && text.at(-1 - end) === other.at(-1 - end)) end += 1;
  return make(
    kind,
    {},
    plain(text.slice(0, start)),
    make("b", {}, plain(text.slice(start, text.length - end))),
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
  const track = make("div.track", {}, svg);
  for (const [start, end] of strip.gaps) {
    svg.append(draw("rect", {class: "silence", x: start * scale, y: 0, width: (end - start) * scale, height: 34}));
    const label = make("span.gap", {}, `${time(end - start)} silence`);
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
  const facts = [
    strip.first !== null ? `first byte ${time(strip.first)}` : "",
    strip.chunks
      ? `${strip.chunks.toLocaleString()} chunk${strip.chunks > 1 ? "s" : ""}, ${strip.bytes.toLocaleString()} bytes`
      : "",
    longest ? `longest silence ${time(longest)}` : "",
  ];
  return make(
    "div.strip",
    {},
    track,
    make(
      "p",
      {},
      make("span", {}, "0"),
      make("span", {}, facts.filter(Boolean).join(" · ")),
      make("span", {}, time(strip.end)),
    ),
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
  const made = [make("div.wire", {}, plain(`${row.method} ${data.url}`))];
  const loose = data.findings.filter((finding) => !finding.at);
  if (loose.length) made.push(make("div.notes", {}, loose.map(noteOf)));
  made.push(stripOf(data.strip));
  const talk = make("div.talk");
  if (data.request) talk.append(...(await requestOf(data, row.api)));
  const answers = data.findings.filter((finding) => finding.side === "response" && finding.at);
  if (data.reply) talk.append(...replyOf(data.reply, answers, "reply", data.delivered ? ".answer.was" : ".answer"));
  if (data.delivered) talk.append(...replyOf(data.delivered, [], "delivered", ".answer.sent"));
  if (data.delivered?.length === 0)
    talk.append(turnOf("delivered", "reply", [{kind: "text", text: ""}], [], ".answer.sent"));
  for (const [side, text] of data.raw ?? [])
    talk.append(make("div.turn", {}, make("div.who", {}, side), textOf(text, [], "div.said-text.mono")));
  made.push(talk);
  const remarks = [...(data.notes ?? [])];
  if (row.known) remarks.push(row.known);
  if (data.error) remarks.push(data.error);
  if (data.errorObject) remarks.push(`error object: ${data.errorObject}`);
  if (row.end !== "complete" && row.end !== "unknown") remarks.push(`ended: ${row.end}`);
  if (data.usage) {
    const counts = Object.entries(data.usage)
      .filter(([, count]) => typeof count === "number")
      .map(([name, count]) => `${name} ${count.toLocaleString()}`);
    if (counts.length) remarks.push(counts.join(" · "));
  }
  if (remarks.length)
    made.push(
      make(
        "div.aside.facts",
        {},
        remarks.map((text) => make("span", {}, plain(text))),
      ),
    );
  if (data.fixes.length) made.push(make("div.aside", {}, make("h3", {}, "Rewritten"), data.fixes.map(fixOf)));
  if (data.diff.length)
    made.push(
      make(
        "details.aside",
        {open: data.diff.length <= 60},
        make("summary", {}, "What was changed on the wire"),
        diffOf(data.diff),
      ),
    );
  const heads = data.headers.filter(([, fields]) => fields.length);
  if (heads.length) {
    made.push(
      make(
        "details.aside",
        {},
        make("summary", {}, "Headers"),
        heads.map(([side, fields]) => [
          make("h3", {}, side),
          make(
            "dl.headers",
            {},
            fields.map(([name, value]) => [make("dt", {}, plain(name)), make("dd", {}, plain(value))]),
          ),
        ]),
      ),
    );
  }
  return made.filter(Boolean);
}

function fixOf(fix) {
  const lines = [
    ...(fix.before ? fix.before.split("\n").map((text) => `-${text}`) : []),
    ...(fix.after ? fix.after.split("\n").map((text) => `+${text}`) : []),
  ];
  return make(
    "div.fix",
    {},
    make("span.code", {}, plain(fix.code)),
    plain(`${fix.title} (${fix.safety}, ${fix.side}${fix.pointer ? ` ${fix.pointer}` : ""})`),
    lines.length ? diffOf(lines) : null,
  );
}

/* ---- boxes ---- */

const opened = new Set();
let everything = false; // all are open, save those in `closed`
const closed = new Set();
const isOpen = (number) => (everything ? !closed.has(number) : opened.has(number));

const worst = (row) =>
  SEVERITIES.find((severity) => row.findings.some((finding) => finding.severity === severity)) ?? "clean";

function boxOf(number) {
  const row = rows[number];
  const box = make(`article.box.${worst(row)}`, {"data-row": number, tabindex: -1, "aria-label": line(row.id)});
  const what = row.title || `${row.method} ${row.path}`;
  const facts = [
    row.model && make("span", {}, plain(row.model)),
    make("span", {}, plain(row.api || "unknown API")),
    row.provider && make("span", {}, plain(row.provider)),
    row.status !== null && make(`span${row.status >= 400 ? ".bad" : ""}`, {}, String(row.status)),
    row.stream && make("span", {}, "stream"),
    row.duration !== null && make("span", {}, time(row.duration)),
    row.started !== null &&
      row.started > 0 &&
      row.started < 1e11 &&
      make("span", {}, new Date(row.started * 1000).toISOString().slice(0, 19).replace("T", " ")),
    row.end !== "complete" && row.end !== "unknown" && make("span.bad", {}, row.end),
    row.rewritten && make("span.fixed", {}, "✎ rewritten"),
    row.known && make("span", {}, plain(row.known)),
  ];
  const link = make(
    "a.id",
    {href: `#${encodeURIComponent(row.anchor)}`, title: "Link to this exchange"},
    plain(row.anchor),
  );
  box.append(
    make(
      "div.head",
      {click: (event) => event.target.closest("a") || toggle(number)},
      make(
        `button.title${row.title ? "" : ".plain"}`,
        {type: "button", "aria-expanded": String(isOpen(number))},
        marked(what, hits(what)),
      ),
      link,
      make("div.facts", {}, facts.filter(Boolean)),
    ),
  );
  if (row.findings.length) box.append(briefOf(row, number));
  const found = snippets.get(number);
  if (found && !isOpen(number)) box.append(make("div.snippet", {}, "… ", marked(found, hits(found)), " …"));
  if (isOpen(number)) fillBox(box, number);
  return box;
}

function briefOf(row, number) {
  const shown = row.findings.slice(0, 4);
  const items = shown.map((finding, count) =>
    make(
      "li",
      {},
      make(
        `button.code.${finding.severity}`,
        {type: "button", title: `${line(finding.name)}: show it`, click: () => showFinding(number, finding.code)},
        plain(finding.code),
      ),
      make(
        "span.said",
        {title: line(finding.message)},
        make("b", {}, plain(finding.name)),
        make("small", {}, ` ${finding.layer} `),
        plain(finding.message),
      ),
    ),
  );
  if (row.findings.length > shown.length)
    items.push(make("li", {}, make("small", {}, `and ${row.findings.length - shown.length} more`)));
  return make("ul.brief", {}, items);
}

async function fillBox(box, number) {
  const body = make("div.body", {"aria-busy": "true"}, make("p.wait", {}, "…"));
  one(".snippet", box)?.remove();
  if (one(".brief", box)) one(".brief", box).hidden = true;
  box.append(body);
  body.replaceChildren(...(await bodyOf(number)));
  body.removeAttribute("aria-busy");
}

async function toggle(number, wanted = !isOpen(number)) {
  const box = boxAt(number);
  if (wanted === isOpen(number) && Boolean(box && one(".body", box)) === wanted) return;
  if (everything) wanted ? closed.delete(number) : closed.add(number);
  else wanted ? opened.add(number) : opened.delete(number);
  if (!box) return;
  one(".title", box).setAttribute("aria-expanded", String(wanted));
  one(".body", box)?.remove();
  if (wanted) await fillBox(box, number);
  else if (one(".brief", box)) one(".brief", box).hidden = false;
}

async function showFinding(number, code) {
  await toggle(number, true);
  const box = boxAt(number);
  const note =
    box &&
    all(".note .code", box)
      .find((item) => item.dataset.code === code)
      ?.closest(".note");
  note?.scrollIntoView({block: "center"});
  note?.focus({preventScroll: true});
}

const boxAt = (number) => one(`article[data-row="${number}"]`, list);

/* ---- the list ---- */

const list = one("#list");
let entries = []; // what is listed: the number of an exchange, or an array of the numbers of clean ones
let unfolded = new Set(); // first numbers of arrays that were unfolded
let chosen = -1; // the entry that the keys act on

const watcher = new IntersectionObserver(
  (seen) => {
    for (const {target, isIntersecting} of seen) isIntersecting ? fill(target) : empty(target);
  },
  {rootMargin: `${NEAR} 0px`},
);

function fill(batch) {
  if (batch.childElementCount) return;
  const first = Number(batch.dataset.first);
  entries.slice(first, first + BATCH).forEach((entry, number) => batch.append(entryOf(entry, first + number)));
  const waiting = all(".body[aria-busy]", batch).length > 0;
  if (!waiting) batch.style.minHeight = "";
}

function empty(batch) {
  if (!batch.childElementCount || printing) return;
  batch.style.minHeight = `${batch.offsetHeight}px`;
  batch.replaceChildren();
}

function entryOf(entry, number) {
  const element =
    typeof entry === "number"
      ? boxOf(entry)
      : make(
          "button.fold",
          {type: "button", click: () => unfold(entry)},
          `${entry.length.toLocaleString()} clean exchange${entry.length > 1 ? "s" : ""}`,
        );
  element.dataset.entry = number;
  if (number === chosen) element.classList.add("chosen");
  return element;
}

function unfold(entry) {
  unfolded.add(entry[0]);
  const next = entry[0];
  render();
  choose(entries.indexOf(next), false);
}

/** Makes the list again from the exchanges that pass the filters. */
function render() {
  // A search, or a filter for clean exchanges, shows clean ones too.
  const severity = one("select[data-filter=severity]").value;
  const boring = one("#hide-clean").checked && !words.length && severity !== "clean";
  const passing = rows.map((_, number) => number).filter(passes);
  entries = [];
  let run = [];
  const end = () => {
    if (!run.length) return;
    if (unfolded.has(run[0])) entries.push(...run);
    else entries.push(run);
    run = [];
  };
  for (const number of passing) {
    if (boring && !rows[number].findings.length && !rows[number].rewritten) {
      run.push(number);
    } else {
      end();
      entries.push(number);
    }
  }
  end();
  chosen = -1;
  watcher.disconnect();
  list.replaceChildren();
  for (let first = 0; first < entries.length; first += BATCH) {
    const batch = make("div.batch", {"data-first": first});
    batch.style.minHeight = `${Math.min(BATCH, entries.length - first) * 70}px`;
    list.append(batch);
    watcher.observe(batch);
  }
  if (list.firstChild) fill(list.firstChild);
  one("#nothing").hidden = passing.length > 0;
  one("#shown").textContent =
    passing.length === rows.length
      ? `${rows.length.toLocaleString()} exchange${rows.length === 1 ? "" : "s"}`
      : `${passing.length.toLocaleString()} of ${rows.length.toLocaleString()}`;
  one("#clear").hidden = !filtered();
}

function choose(number, scroll = true) {
  if (!entries.length) return;
  one(".chosen", list)?.classList.remove("chosen");
  chosen = Math.max(0, Math.min(number, entries.length - 1));
  const batch = list.children[Math.floor(chosen / BATCH)];
  fill(batch);
  const element = batch.children[chosen % BATCH];
  element.classList.add("chosen");
  element.focus({preventScroll: true});
  if (scroll) element.scrollIntoView({block: element.offsetHeight > innerHeight * 0.7 ? "start" : "nearest"});
}

/* ---- filters and search ---- */

const selects = all("select[data-filter]");
let words = [];
let matching = null; // numbers of the exchanges that the search found; null: it asks for nothing
let snippets = new Map();

const filtered = () => selects.some((select) => select.selectedIndex > 0) || words.length > 0;

const TESTS = {
  severity: (row, value) =>
    value === "clean" ? !row.findings.length : row.findings.some((finding) => finding.severity === value),
  rule: (row, value) => row.findings.some((finding) => finding.code === value),
  layer: (row, value) => row.findings.some((finding) => finding.layer === value),
  model: (row, value) => row.model === value,
  provider: (row, value) => row.provider === value,
  api: (row, value) => row.api === value,
  rewritten: (row, value) => row.rewritten === (value === "yes"),
};

function passes(number) {
  if (matching !== null && !matching.has(number)) return false;
  return selects.every(
    (select) => select.selectedIndex <= 0 || TESTS[select.dataset.filter](rows[number], select.value),
  );
}

function setFilter(kind, value) {
  const select = selects.find((item) => item.dataset.filter === kind);
  const option = [...select.options].findIndex((item, number) => number > 0 && item.value === value);
  select.selectedIndex = select.selectedIndex === option ? 0 : option;
  refilter();
  one(".filters").scrollIntoView({block: "start"});
}

const hidesByDefault = () => rows.some((row) => row.findings.length);

/** Writes the filters behind the id in the address: `#ID?rule=LK101&search=tide`. They are in a link to the page, too. */
function keepFilters() {
  const state = new URLSearchParams();
  for (const select of selects) if (select.selectedIndex > 0) state.set(select.dataset.filter, select.value);
  if (words.length) state.set("search", one("#search").value);
  if (one("#hide-clean").checked !== hidesByDefault()) state.set("clean", one("#hide-clean").checked ? "hide" : "show");
  const [id] = location.hash.slice(1).split("?");
  const hash = state.size ? `#${id}?${state}` : id && `#${id}`;
  if (hash === location.hash) return;
  try {
    history.replaceState(null, "", hash || location.href.split("#")[0]);
  } catch {
    /* a frame without an address, or a browser that limits the changes: the filters work all the same */
  }
}

/** Sets the filters that the address names. Without any it changes nothing. */
async function readFilters() {
  const at = location.hash.indexOf("?");
  if (at < 0) return;
  const state = new URLSearchParams(location.hash.slice(at + 1));
  for (const select of selects) {
    const value = state.get(select.dataset.filter);
    select.selectedIndex = Math.max(0, [...select.options].findIndex((item, n) => n > 0 && item.value === value));
  }
  one("#hide-clean").checked = state.has("clean") ? state.get("clean") === "hide" : hidesByDefault();
  one("#search").value = state.get("search") ?? "";
  await search();
}

function refilter() {
  keepFilters();
  for (const select of selects) select.classList.toggle("set", select.selectedIndex > 0);
  unfolded = new Set();
  render();
}

function clearFilters() {
  for (const select of selects) select.selectedIndex = 0;
  one("#search").value = "";
  words = [];
  matching = null;
  snippets = new Map();
  refilter();
}

// The searched texts in lower case: every message once, and the rest of every exchange.
let corpus = null;

async function gather() {
  const made = {messages: [], exchanges: [], uses: []};
  for (let number = 0; number < blocks.length; number += 1) {
    one("#shown").textContent = `reading ${Math.round((number / blocks.length) * 100)} %`;
    const data = await unpack(blocks[number]);
    for (const said of data.messages) made.messages.push(lowered(said.parts.map(spoken).join("\n")));
    for (const item of data.exchanges) {
      const row = rows[made.exchanges.length];
      const answers = [...(item.reply ?? []), ...(item.delivered ?? [])].map((choice) =>
        choice.parts.map(spoken).join("\n"),
      );
      const rest = [...answers];
      for (const finding of item.findings) rest.push(`${finding.code} ${finding.name} ${finding.message}`);
      for (const fix of item.fixes) rest.push(fix.title, fix.before, fix.after);
      for (const [, text] of item.raw ?? []) rest.push(text);
      for (const [, fields] of item.headers) for (const field of fields) rest.push(field.join(": "));
      rest.push(row.id, row.source, row.model, row.api, item.url, row.title, item.error);
      made.exchanges.push(lowered(rest.filter(Boolean).join("\n")));
      made.uses.push((item.request ?? []).map((turn) => turn[2]));
    }
  }
  return made;
}

const spoken = (part) => [part.name, part.id, part.text, part.note].filter(Boolean).join(" ");

/** Returns the words of a query; a quotation is one word. */
const queryWords = (text) => [...text.matchAll(/"([^"]+)"?|(\S+)/g)].map((found) => lowered(found[1] ?? found[2]));

let searches = 0;

async function search() {
  const mine = (searches += 1);
  const wanted = queryWords(one("#search").value);
  if (!wanted.length) {
    words = [];
    matching = null;
    snippets = new Map();
    return refilter();
  }
  corpus ??= gather();
  const {messages, exchanges, uses} = await corpus;
  if (mine !== searches) return;
  const found = wanted.map(
    (word) => new Set(messages.flatMap((text, number) => (text.includes(word) ? [number] : []))),
  );
  words = wanted;
  matching = new Set();
  snippets = new Map();
  exchanges.forEach((text, number) => {
    if (!wanted.every((word, n) => text.includes(word) || uses[number].some((used) => found[n].has(used)))) return;
    matching.add(number);
    const title = lowered(rows[number].title);
    if (wanted.every((word) => title.includes(word))) return;
    const where = text.includes(wanted[0]) ? text : messages[uses[number].findLast((used) => found[0].has(used))];
    const at = where.indexOf(wanted[0]);
    snippets.set(number, where.slice(Math.max(0, at - 60), at + 120).replace(/\s+/g, " "));
  });
  refilter();
}

/* ---- links, keys, theme, print ---- */

async function follow() {
  await readFilters();
  let name = "";
  try {
    name = decodeURIComponent(location.hash.slice(1).split("?")[0]);
  } catch {
    return;
  }
  const number = name ? rows.findIndex((row) => row.anchor === name) : -1;
  if (number < 0) return;
  const there = () => entries.findIndex((entry) => entry === number);
  if (there() < 0 && !passes(number)) clearFilters();
  if (there() < 0) {
    const fold = entries.find((entry) => typeof entry !== "number" && entry.includes(number));
    if (fold) unfold(fold);
  }
  choose(there());
  await toggle(number, true);
  boxAt(number)?.scrollIntoView({block: "start"});
}

function nextFound(step) {
  for (let at = chosen + step; at >= 0 && at < entries.length; at += step) {
    if (typeof entries[at] === "number" && rows[entries[at]].findings.length) return choose(at);
  }
}

async function act() {
  const entry = entries[chosen];
  if (entry === undefined) return;
  if (typeof entry !== "number") return unfold(entry);
  await toggle(entry);
  if (isOpen(entry)) boxAt(entry)?.scrollIntoView({block: "start"});
}

async function showManuals() {
  const entry = entries[chosen];
  if (typeof entry !== "number") return;
  await toggle(entry, true);
  const notes = all(".note", boxAt(entry));
  const wanted = !notes.some((note) => one(".manual", note));
  const shown = new Set();
  for (const note of notes) {
    const {code} = one(".code", note).dataset;
    manual(note, code, wanted && !shown.has(code));
    shown.add(code);
  }
}

function escape() {
  const field = one("#search");
  if (document.activeElement === field) {
    field.blur();
    return;
  }
  const entry = entries[chosen];
  if (typeof entry === "number" && isOpen(entry)) toggle(entry, false);
  else if (filtered()) clearFilters();
}

function setAll() {
  everything = !everything;
  opened.clear();
  closed.clear();
  const kept = chosen;
  render();
  if (kept >= 0) choose(kept);
}

function setTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const root = document.documentElement;
  const order = dark ? ["", "light", "dark"] : ["", "dark", "light"];
  const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  remember("wirelint-theme", next);
}

// Some browsers store nothing for a page that is a file; then settings are not kept.
function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    /* not kept */
  }
}

function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

const KEYS = {
  j: () => choose(chosen + 1),
  k: () => choose(chosen - 1),
  n: () => nextFound(1),
  p: () => nextFound(-1),
  g: () => choose(0),
  G: () => choose(entries.length - 1),
  Enter: act,
  o: act,
  e: setAll,
  m: showManuals,
  "/": () => one("#search").focus(),
  h: () => one("#hide-clean").click(),
  t: setTheme,
  "?": () => one("#keys").showModal(),
  Escape: escape,
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || one("#keys").open) return;
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (typing && event.key !== "Escape" && !(event.key === "Enter" && event.target.id === "search")) return;
  if (event.key === "Enter" && event.target.id === "search") {
    event.preventDefault();
    event.target.blur();
    return choose(0);
  }
  if (event.key === "Enter" && event.target.closest("button, a, summary") && !event.target.matches(".fold")) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

let printing = false;

function setUp() {
  document.addEventListener("keydown", onKey);
  document.addEventListener(
    "click",
    (event) => {
      const count = event.target.closest("button[data-filter]");
      if (count) setFilter(count.dataset.filter, count.dataset.value);
      const entry = event.target.closest("[data-entry]");
      if (!entry) return;
      one(".chosen", list)?.classList.remove("chosen");
      chosen = Number(entry.dataset.entry);
      entry.classList.add("chosen");
    },
    true,
  );
  let waiting;
  one("#search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 150);
  });
  one(".filters").addEventListener("submit", (event) => event.preventDefault());
  for (const select of selects) select.addEventListener("change", refilter);
  one("#hide-clean").addEventListener("change", refilter);
  for (const id of ["#clear", "#nothing-clear"]) {
    one(id).addEventListener("click", (event) => {
      event.preventDefault();
      clearFilters();
    });
  }
  one("#more").addEventListener("click", () => {
    const wide = one(".filters").classList.toggle("wide");
    one("#more").setAttribute("aria-expanded", wide);
  });
  one("#theme").addEventListener("click", setTheme);
  one("#help").addEventListener("click", () => one("#keys").showModal());
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => {
    printing = true;
    one(".summary").open = true;
    for (const batch of list.children) fill(batch);
  });
  addEventListener("afterprint", () => {
    printing = false;
    render();
  });
}

async function begin() {
  const theme = remembered("wirelint-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  const index = await unpack(one("script.index"));
  ({rows, blocks: firsts} = index);
  one("#hide-clean").checked = hidesByDefault();
  setUp();
  render();
  await follow();
}

begin();
