/* The page of `wirelint report`. It follows exchange.js, which makes the elements.
 *
 * The page holds its data in blocks of compressed JSON (see __init__.py). The script unpacks the index, a row per exchange,
 * at once, and a block when somebody opens or searches an exchange in it. The list consists of batches of boxes: a batch far
 * from the window is emptied and keeps its height, so the page stays small however many exchanges it holds.
 */

const BATCH = 40; // boxes in a batch
const NEAR = "1200px"; // how far from the window boxes are made
const MOST_BLOCKS = 24; // unpacked blocks that are kept

/* ---- data ---- */

async function unpack(element) {
  const packed = element.textContent;
  const bytes = Uint8Array.fromBase64?.(packed) ?? Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

const blocks = all("script.block");
const unpacked = new Map(); // number of a block → promise of it, the latest used last
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

/* ---- boxes ---- */

const opened = new Set();
let everything = false; // all are open, save those in `closed`
const closed = new Set();
const isOpen = (number) => (everything ? !closed.has(number) : opened.has(number));

function boxOf(number) {
  const row = rows[number];
  const box = make(`article.box.${worst(row)}`, {"data-row": number, tabindex: -1, "aria-label": line(row.id)});
  const isTimed = row.started > 0 && row.started < 1e11;
  const began = isTimed && new Date(row.started * 1000).toISOString().slice(0, 19).replace("T", " ");
  const names = [row.model, row.api || "unknown API", row.provider].filter(Boolean);
  const place = {href: `#${encodeURIComponent(row.anchor)}`, title: "Link to this exchange"};
  const open = (event) => event.target.closest("a") || toggle(number);
  const facts = names.map((name) => make("span", plain(name)));
  box.append(headOf(row, isOpen(number), open, make("a.id", place, plain(row.anchor)), began, facts));
  if (row.findings.length) box.append(findingsOf(row, number));
  const found = snippets.get(number);
  if (found && !isOpen(number)) box.append(make("div.snippet", "… ", marked(found, hits(found)), " …"));
  if (isOpen(number)) fillBox(box, number);
  return box;
}

function findingsOf(row, number) {
  const shown = row.findings.slice(0, 4);
  const items = shown.map((finding) => {
    const shows = {
      type: "button",
      title: `${line(finding.name)}: show it`,
      click: () => showFinding(number, finding.code),
    };
    return briefOf(finding, make(`button.code.${finding.severity}`, shows, plain(finding.code)));
  });
  if (row.findings.length > shown.length)
    items.push(make("li", make("small", `and ${row.findings.length - shown.length} more`)));
  return make("ul.brief", items);
}

async function fillBox(box, number) {
  const body = make("div.body", {"aria-busy": "true"}, make("p.wait", "…"));
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
  if (scroll) reveal(element);
}

/* ---- filters and search ---- */

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
    select.selectedIndex = Math.max(
      0,
      [...select.options].findIndex((item, n) => n > 0 && item.value === value),
    );
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
  search();
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

Object.assign(KEYS, {
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
  h: () => one("#hide-clean").click(),
  Escape: escape,
});

let printing = false;

function setUp() {
  listen();
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
  one("#hide-clean").addEventListener("change", refilter);
  for (const id of ["#clear", "#nothing-clear"]) {
    one(id).addEventListener("click", (event) => {
      event.preventDefault();
      clearFilters();
    });
  }
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
  restoreTheme();
  const index = await unpack(one("script.index"));
  ({rows, blocks: firsts} = index);
  one("#hide-clean").checked = hidesByDefault();
  setUp();
  render();
  await follow();
}

begin();
