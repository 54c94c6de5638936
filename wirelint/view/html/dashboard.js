/* The live page. It follows exchange.js, which makes the elements of an exchange.
 *
 * Server-sent events bring the totals, the changed conversations and issues, and the exchanges in progress (see
 * addon/dashboard.py). Conversations are kept by id and drawn once per frame; an open one is fetched again when it changes.
 * The filters and the open conversation are in the address after `#`, so a link shows the same view.
 */

const MOST_MATCHED = 300; // boxes that are drawn
const token = new URLSearchParams(location.search).get("token") ?? "";
const conversations = new Map();
const issues = new Map();
let running = []; // exchanges in progress
let totals = null;
let entries = []; // ids of the conversations that are shown, in their order
let chosen = "";
let issue = ""; // the fingerprint that filters
const opened = new Map(); // id of a conversation → its data, null until they are there
const unfolded = new Map(); // id of an exchange → its data, null until they are there

// What exchange.js asks for: the exchange whose details are being drawn.
let detail = null;
const exchange = async () => detail.detail;
const message = async (number) => detail.messages[number];

async function ask(path, id) {
  const reply = await fetch(`${path}?${new URLSearchParams({token, id})}`);
  return reply.ok ? reply.json() : null;
}

/* ---- events ---- */

function receive(state) {
  if (state.all) {
    conversations.clear();
    issues.clear();
  }
  for (const row of state.rows) conversations.set(row.id, row);
  for (const one of state.issues) issues.set(one.id, one);
  for (const id of state.gone) {
    conversations.delete(id);
    issues.delete(id);
  }
  totals = state.totals;
  running = state.open;
  for (const row of state.rows) if (opened.has(row.id)) fetchLater(row.id);
  schedule();
}

function connect() {
  const source = new EventSource(`events?${new URLSearchParams({token})}`);
  source.addEventListener("state", (event) => {
    setState("live", "live");
    receive(JSON.parse(event.data));
  });
  source.addEventListener("end", () => {
    source.close();
    running = [];
    setState("the run has ended; this is its last state", "over");
    schedule();
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) setState("refused: open the address with its token", "over");
    else setState("connection lost; trying again", "");
  });
}

function setState(text, kind) {
  const state = one("#state");
  state.textContent = text;
  state.className = `state ${kind}`;
}

let scheduled = false;

function schedule() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    draw_();
  }, 30);
}

function draw_() {
  drawTotals();
  drawRunning();
  drawIssues();
  drawChoices();
  drawList();
}

/* ---- totals, exchanges in progress, issues ---- */

const count = (number) => number.toLocaleString("en");
const clock = (seconds) => (seconds === null ? "" : new Date(seconds * 1000).toTimeString().slice(0, 8));
const tile = (kind, number, label) => make(`p${kind}${number ? "" : ".none"}`, make("b", count(number)), ` ${label}`);
const plural = (number, word) => `${word}${number === 1 ? "" : "s"}`;

function costTile() {
  const {cost, prices} = totals;
  if (cost === null) return "";
  if (!cost.startsWith("$")) return make("p", {title: prices}, `cost ${cost}`);
  const [known, rest] = cost.split(" + "); // `$0.0312 + 2 unknown`
  return make("p", {title: prices}, make("b", known), ` cost${rest ? `, ${rest}` : ""}`);
}

function drawTotals() {
  if (!totals) return;
  document.body.classList.toggle("priced", totals.cost !== null);
  one("#prices").textContent = totals.prices ? ` · cost by ${totals.prices}` : "";
  const {error, warning, info} = totals.issues;
  one("#totals").replaceChildren(
    tile("", totals.exchanges, plural(totals.exchanges, "exchange")),
    tile("", totals.conversations, plural(totals.conversations, "conversation")),
    tile("", totals.in, "tokens in"),
    tile("", totals.out, "tokens out"),
    costTile(),
    tile(".error", error, plural(error, "error")),
    tile(".warning", warning, plural(warning, "warning")),
    tile(".info", info, "info"),
    tile(".rewritten", totals.fixed, "fixed"),
  );
}

function drawRunning() {
  const area = one("#open");
  area.hidden = !running.length;
  area.replaceChildren(...running.map(nowOf));
}

const age = (began) => time(Math.max(0, Date.now() - began * 1000));

/** Returns an exchange in progress, with the end of its reply. */
function nowOf(now) {
  const facts = [
    make("b", plain(now.model || now.title || "request")),
    now.client && make("span", plain(now.client)),
    now.api && make("span", plain(now.api)),
    make("span.age", {"data-began": now.began}, `open for ${age(now.began)}`),
    now.first === null ? make("span", "no token yet") : make("span", `first token ${time(now.first)}`),
    now.length > 0 && make("span", `${count(now.length)} characters`),
    now.thinking && make("span", "thinking"),
    ...now.calls.map((name) => make("span.mono", "→ ", plain(name))),
  ];
  const text = now.text && make("div.said-text", make("div", plain(now.text)));
  return make(`article.card.now${now.thinking ? ".thinking" : ""}`, make("div.facts", facts), text);
}

function drawAges() {
  for (const element of all("#open .age")) {
    element.textContent = `open for ${age(Number(element.dataset.began))}`;
  }
}

function drawIssues() {
  const order = (one) => SEVERITIES.indexOf(one.severity);
  const shown = [...issues.values()].sort((a, b) => order(a) - order(b) || b.last - a.last);
  one("#issues-panel").hidden = !shown.length;
  one("#issues-count").textContent = shown.length ? `${count(shown.length)} by fingerprint` : "";
  const field = one("#issues");
  const at = field.scrollTop;
  const focused = document.activeElement?.closest?.(".issue")?.dataset.print;
  field.replaceChildren(...shown.map((item) => make("li", issueOf(item), pageOf(item))));
  field.scrollTop = at;
  if (focused) all(".issue", field).find((item) => item.dataset.print === focused)?.focus();
}

function issueOf(item) {
  const first = clock(item.first);
  const last = clock(item.last);
  return make(
    "button.issue",
    {
      type: "button",
      "data-print": item.id,
      "aria-pressed": String(issue === item.id),
      title: `${line(item.message)}\nfingerprint ${item.id}`,
      click: () => setIssue(item.id),
    },
    make(`span.code.${item.severity}`, plain(item.code)),
    make("span.said", make("b", plain(item.name)), plain(item.message)),
    make("span.seen", make("b", `${count(item.count)}×`), ` ${item.layer} · ${first === last ? first : `${first} – ${last}`}`),
  );
}

/** Returns a link to the page of an issue's rule; null for a rule of the user's own. */
function pageOf(item) {
  const page = manualOf(item.code)?.dataset.page;
  return page ? make("a", {href: page, title: "The rule's page on the web", "aria-label": `manual of ${item.name}`}, "manual") : null;
}

function setIssue(id) {
  issue = issue === id ? "" : id;
  refilter();
}

/* ---- filters, which are in the address ---- */

const issuesOf = (row) => SEVERITIES.reduce((sum, severity) => sum + row.issues[severity], 0);

const TESTS = {
  severity: (row, value) => (value === "clean" ? !issuesOf(row) : row.issues[value] > 0),
  client: (row, value) => row.client === value,
  model: (row, value) => row.model === value,
  provider: (row, value) => row.provider === value,
  api: (row, value) => row.api === value,
};

const filtered = () => Boolean(issue || words.length || selects.some((select) => select.value));

function passes(row) {
  if (issue && !row.prints.includes(issue)) return false;
  if (!selects.every((select) => !select.value || TESTS[select.dataset.filter](row, select.value))) return false;
  const text = lowered([row.title, row.client, row.model, row.provider, row.api, row.id].join("\n"));
  return words.every((word) => text.includes(word));
}

/** Adds the values of the rows to the filters. A chosen value without a row stays. */
function drawChoices() {
  for (const select of selects) {
    const kind = select.dataset.filter;
    if (kind === "severity") continue;
    const known = new Set([...select.options].map((option) => option.value));
    for (const value of new Set([...conversations.values()].map((row) => row[kind]))) {
      if (value && !known.has(value)) addChoice(select, value);
    }
    if (wanted[kind]) {
      if (![...select.options].some((option) => option.value === wanted[kind])) addChoice(select, wanted[kind]);
      select.value = wanted[kind];
      delete wanted[kind];
    }
    select.classList.toggle("set", Boolean(select.value));
  }
}

const addChoice = (select, value) => select.append(make("option", {value}, line(value).slice(0, 60)));

let wanted = {}; // values from the address that are not chosen yet

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  one("#search").value = given.get("q") ?? "";
  words = lowered(one("#search").value).split(/\s+/).filter(Boolean);
  issue = given.get("issue") ?? "";
  wanted = Object.fromEntries([...given].filter(([name]) => name in TESTS));
  for (const select of selects) {
    select.value = select.dataset.filter === "severity" ? (wanted.severity ?? "") : "";
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  }
  const open = given.get("open");
  opened.clear();
  if (open) {
    opened.set(open, null);
    chosen = open;
    fetchConversation(open);
  }
}

function writeAddress() {
  const made = new URLSearchParams();
  const text = one("#search").value.trim();
  if (text) made.set("q", text);
  for (const select of selects) if (select.value) made.set(select.dataset.filter, select.value);
  if (issue) made.set("issue", issue);
  const open = [...opened.keys()].at(-1);
  if (open) made.set("open", open);
  const hash = made.toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

function refilter() {
  words = lowered(one("#search").value).split(/\s+/).filter(Boolean);
  writeAddress();
  draw_();
}

function clearFilters() {
  one("#search").value = "";
  issue = "";
  for (const select of selects) select.selectedIndex = 0;
  refilter();
}

/* ---- conversations ---- */

const boxes = new Map(); // id → {row, box}: a box is kept until its row changes

function drawList() {
  const passing = [...conversations.values()].filter(passes).sort((a, b) => b.number - a.number);
  entries = passing.slice(0, MOST_MATCHED).map((row) => row.id);
  for (const id of boxes.keys()) if (!conversations.has(id)) boxes.delete(id);
  const search = words.join(" ");
  const wantedBoxes = entries.map((id) => {
    const row = conversations.get(id);
    const known = boxes.get(id);
    if (known?.row === row && known.search === search) return known.box;
    const box = boxOf(row, known?.box);
    boxes.set(id, {row, box, search});
    return box;
  });
  // Only boxes that moved are touched, so focus and scrolling stay.
  wantedBoxes.forEach((box, number) => {
    if (list.children[number] !== box) list.insertBefore(box, list.children[number] ?? null);
  });
  while (list.children.length > wantedBoxes.length) list.lastChild.remove();
  one("#titles").hidden = !entries.length;
  one("#nothing").hidden = entries.length > 0;
  one("#nothing").textContent = conversations.size ? "No conversation matches the filters." : "Waiting for the first exchange.";
  const [here, of] = [passing.length, conversations.size];
  one("#shown").textContent = here === of ? `${count(of)} ${plural(of, "conversation")}` : `${count(here)} of ${count(of)}`;
  one("#clear").hidden = !filtered();
}

const worstOf = (row) => SEVERITIES.find((severity) => row.issues[severity]) ?? "clean";

/** Returns the box of a conversation. The body of its former box moves into it. */
function boxOf(row, former) {
  const box = make(`article.box.${worstOf(row)}`, {"data-row": row.id, tabindex: -1});
  if (row.id === chosen) box.classList.add("chosen");
  const isOpen = opened.has(row.id);
  const cell = (label, text, kind = "", full = text) =>
    make(
      `span${kind}${text === "" ? ".empty" : ""}`,
      {title: kind === ".number" ? null : line(full)},
      make("span.label", `${label} `),
      kind.startsWith(".number") ? text : plain(text),
    );
  const title = row.title || row.id;
  box.append(
    make(
      "div.line",
      {click: () => toggle(row.id)},
      make("button.title", {type: "button", "aria-expanded": String(isOpen), title: line(title)}, marked(title, hits(title))),
      cell("client", row.client, ".who-else"),
      cell("model", row.model || row.api || "unknown API"),
      cell("turns", count(row.exchanges), ".number"),
      cell("in", count(row.in), ".number"),
      cell("out", count(row.out), ".number"),
      cell("cost", (row.cost ?? "").replace(/ \+ .*/, " +"), ".number.cost", row.cost ?? ""),
      cell("first token", row.first === null ? "" : time(row.first), ".number"),
      cell("time", time(row.took), ".number"),
      make("span.tallies", talliesOf(row)),
    ),
  );
  const body = former && one(".body", former);
  if (isOpen) box.append(body ?? make("div.body", {"aria-busy": "true"}, make("p.wait", "…")));
  if (former?.contains(document.activeElement)) setTimeout(() => one(".title", box)?.focus({preventScroll: true}));
  return box;
}

function talliesOf(row) {
  const made = SEVERITIES.filter((severity) => row.issues[severity]).map((severity) => {
    const number = row.issues[severity];
    return make(`span.tally.${severity}`, `${count(number)} ${severity === "info" ? "info" : plural(number, severity)}`);
  });
  if (row.fixed) made.push(make("span.tally.fixed", `${count(row.fixed)} fixed`));
  return made.length ? made : [make("span.tally", "none")];
}

const boxAt = (id) => boxes.get(id)?.box;

async function toggle(id) {
  chosen = id;
  const isOpen = !opened.has(id);
  if (isOpen) {
    opened.set(id, null);
    boxAt(id).append(make("div.body", {"aria-busy": "true"}, make("p.wait", "…")));
  } else {
    opened.delete(id);
    one(".body", boxAt(id))?.remove();
  }
  one(".title", boxAt(id)).setAttribute("aria-expanded", String(isOpen));
  writeAddress();
  mark();
  if (!isOpen) return;
  await fetchConversation(id);
  if (chosen === id) reveal(boxAt(id));
}

const waiting = new Set(); // ids of open conversations that have changed

/** Fetches an open conversation that has changed, at most once per second. */
function fetchLater(id) {
  if (waiting.has(id)) return;
  waiting.add(id);
  setTimeout(() => {
    waiting.delete(id);
    if (opened.has(id)) fetchConversation(id);
  }, 1000);
}

async function fetchConversation(id) {
  const data = await ask("conversation", id).catch(() => null);
  if (!opened.has(id)) return;
  opened.set(id, data);
  await fillBox(id);
}

let filling = Promise.resolve(); // one at a time: `rows` and `detail` are shared

function fillBox(id) {
  filling = filling.then(() => fill(id)).catch((error) => console.error(error));
  return filling;
}

async function fill(id) {
  const box = boxAt(id);
  const body = box && one(".body", box);
  const data = opened.get(id);
  if (!body) return;
  const made = [];
  if (data?.paths.length) made.push(make("h2", "Tool calls"), data.paths.map(pathOf));
  if (data?.exchanges.length) {
    made.push(make("h2", data.exchanges.length === 1 ? "Exchange" : `Latest ${data.exchanges.length} exchanges`));
    for (const row of [...data.exchanges].reverse()) made.push(await exchangeOf(row, id));
  } else {
    made.push(make("p.wait", "Its exchanges are not kept any more; the captures have them (wirelint show)."));
  }
  const open = all("details.path[open]", body).map((item) => item.dataset.path);
  body.replaceChildren(...made.flat());
  for (const item of all("details.path", body)) if (open.includes(item.dataset.path)) item.open = true;
  body.removeAttribute("aria-busy");
}

async function exchangeOf(row, home) {
  const isOpen = unfolded.has(row.id);
  const id = make("span.id", plain(row.id.slice(0, 8)));
  const head = headOf(row, isOpen, () => toggleExchange(row.id, home), id, clock(row.started));
  const box = make(`article.box.${worst(row)}`, {"data-exchange": row.id}, head);
  if (!isOpen && row.findings.length) {
    const items = row.findings
      .slice(0, 4)
      .map((finding) => briefOf(finding, make(`span.code.${finding.severity}`, plain(finding.code))));
    box.append(make("ul.brief", items));
  }
  if (isOpen) {
    detail = unfolded.get(row.id);
    rows = [detail?.row];
    box.append(make("div.body", detail ? await bodyOf(0) : make("p.wait", "not kept any more")));
  }
  return box;
}

async function toggleExchange(id, home) {
  if (unfolded.has(id)) unfolded.delete(id);
  else unfolded.set(id, await ask("exchange", id).catch(() => null));
  await fillBox(home);
}

const STATES = {ok: "✓", changed: "✎", failed: "▲", unseen: "·", missing: "✗"};

/** Returns the path of a call through the layers. */
function pathOf(path, number) {
  const known = path.waiting ? path.steps.filter((step) => step.state !== "missing") : path.steps;
  const trail = known.flatMap((step, place) => [
    place ? " → " : "",
    make(`span.${step.state}`, `${step.layer} ${STATES[step.state] ?? ""}`),
  ]);
  const wrong = path.steps.some((step) => step.state === "failed" || step.findings.length) || (path.end && !path.waiting);
  return make(
    "details.path",
    {"data-path": `${path.exchange} ${path.id ?? ""} ${number}`, open: wrong},
    make(
      "summary",
      make("span.mono", plain(path.name || "(no name)")),
      make("span.trail", trail),
      path.end && path.waiting ? make("span.trail", "waiting for the client's next request") : null,
      path.end && !path.waiting ? make("span.ends", " ends here: ", plain(path.end)) : null,
    ),
    make(
      "ol.steps",
      known.map((step) =>
        make(
          "li",
          make("span.at", step.at_ms === null ? "" : `+${time(step.at_ms)}`),
          make(`span.${step.state}`, STATES[step.state] ?? ""),
          make("span", step.layer),
          make(
            "div",
            prose(step.what),
            step.took_ms === null ? null : make("small", ` took ${time(step.took_ms)}`),
            step.said ? make("div.said-text.mono", plain(step.said)) : null,
            step.changes.map((change) => make("div.mono", `${change.what}: `, plain(change.before.slice(0, 120) || "(none)"), " → ", plain(change.after.slice(0, 120) || "(none)"))),
            step.findings.map((finding) => make("div", make(`span.code.${finding.severity}`, plain(finding.code)), " ", prose(finding.message))),
          ),
        ),
      ),
    ),
  );
}

/* ---- keys ---- */

function mark() {
  for (const box of all(".box.chosen", list)) box.classList.remove("chosen");
  boxAt(chosen)?.classList.add("chosen");
}

function choose(number) {
  if (!entries.length) return;
  chosen = entries[Math.max(0, Math.min(number, entries.length - 1))];
  mark();
  const box = boxAt(chosen);
  box.focus({preventScroll: true});
  reveal(box);
}

const place = () => entries.indexOf(chosen);

function escape() {
  if (document.activeElement === one("#search")) one("#search").blur();
  else if (opened.has(chosen)) toggle(chosen);
  else if (filtered()) clearFilters();
}

Object.assign(KEYS, {
  j: () => choose(place() + 1),
  k: () => choose(place() - 1),
  g: () => choose(0),
  G: () => choose(entries.length - 1),
  Enter: () => place() >= 0 && toggle(chosen),
  o: () => place() >= 0 && toggle(chosen),
  Escape: escape,
});

listen();
one("#search").addEventListener("input", refilter);
one(".filters").addEventListener("reset", (event) => {
  event.preventDefault();
  clearFilters();
});
one("#home").addEventListener("click", (event) => {
  event.preventDefault();
  clearFilters();
});
addEventListener("hashchange", () => {
  readAddress();
  boxes.clear();
  draw_();
});
setInterval(drawAges, 500);
restoreTheme();
readAddress();
connect();
