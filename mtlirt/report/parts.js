// The parts of the page: tabs, leaderboard, models, items.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const board = Object.fromEntries(data.leaderboard.map((column) => [column.name, column]));
const models = board.model.values, folded = models.map(fold);
const traits = data.leaderboard.filter((c) => c.kind === "trait");
const errors = data.leaderboard.filter((c) => c.kind === "se");
const byRank = models.map((_, i) => i).sort((i, j) =>
  (board.general_rank.values[i] ?? Infinity) - (board.general_rank.values[j] ?? Infinity) || i - j);
const whenShown = { verdict: leaders, models: () => model(chosenModel), items: () => chosenItem !== null && item(chosenItem) };
let chosenModel = byRank[0], chosenItem = null;

// Tabs ---------------------------------------------------------------------------------------------------------------

const tabs = [...document.querySelectorAll("[role=tab]")];
const enterTab = roving(document.querySelector("[role=tablist]"), "[role=tab]");

function open(id) {
  for (const tab of tabs) {
    const own = tab.getAttribute("aria-controls") === id;
    tab.setAttribute("aria-selected", own);
    byId(tab.getAttribute("aria-controls")).hidden = !own;
    if (own) enterTab(tab);
  }
  if (whenShown[id]) whenShown[id]();
}

function redraw() {
  const shown = tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
  const again = whenShown[shown.getAttribute("aria-controls")];
  if (again) again();
}

// Verdict ------------------------------------------------------------------------------------------------------------

function leaders() {
  const rows = byRank.slice(0, 20).map((i) =>
    ({ name: models[i], value: board.general.values[i], se: board["se:general"].values[i] }));
  dots(byId("leaders"), rows, { label: "General trait of the leading models", axisName: "general trait" });
}

// Leaderboard --------------------------------------------------------------------------------------------------------

const STEPS = [0.25, 0.75, 1.25, 2]; // traits from which a deeper colour begins
function tint(value) {
  if (value === null) return "none";
  const depth = STEPS.filter((step) => Math.abs(value) >= step).length;
  return depth ? `${value > 0 ? "high" : "low"}${depth}` : "";
}

function boardColumn(column) {
  const { values, kind, digits, label } = column;
  const numeric = kind !== "name" && kind !== "text";
  return { label: kind === "se" ? "se" : label, title: column.name, values, numeric,
    width: { name: 240, text: 200, rank: 80, trait: 108, share: 80, general: 88, se: 62 }[kind],
    first: kind === "rank" || !numeric ? 1 : -1,
    text: numeric ? (i) => show(values[i], kind === "trait" || kind === "general" || kind === "se" ? 2 : Math.min(digits, 3)) : (i) => values[i],
    ties: { general: board.general_rank.values, share: board.mean_score_rank.values }[kind], name: kind === "name" || kind === "text",
    paint: kind === "trait" || kind === "general" ? (i) => tint(values[i]) : null };
}

const shownColumns = [board.model, board.general_rank, board.general, board["se:general"], board.mean_score,
  board.mean_score_rank, ...traits, ...(board.borrowed ? [board.borrowed] : [])].map(boardColumn);
if (window.matchMedia("(max-width: 600px)").matches) shownColumns[0].width = 176;
const boardGrid = new Grid(byId("board"), { columns: shownColumns, size: models.length, label: "Leaderboard",
  pick: (i) => { chosenModel = i; open("models"); byId("model").querySelector("h3").focus(); } });
boardGrid.sort(1, 1);

function counted(place, n, all, what) {
  byId(place).textContent = n === all ? `${show(all, 0)} ${what}` : `${show(n, 0)} of ${show(all, 0)} ${what}`;
}

function searched(input, act) {
  input.addEventListener("input", () => act(fold(input.value.trim())));
}

searched(byId("search-board"), (wanted) => {
  boardGrid.filter(wanted ? (i) => folded[i].includes(wanted) : null);
  counted("count-board", boardGrid.rows.length, models.length, "models");
});
counted("count-board", models.length, models.length, "models");

// All columns. Texts are quoted; an apostrophe keeps a spreadsheet from taking one for a formula.
function csv(rows) {
  const quoted = (text) => `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  const cell = (column, i) => {
    const value = column.values[i];
    return typeof value === "string" ? quoted(value) : value === null ? "" : String(value);
  };
  const lines = rows.map((i) => data.leaderboard.map((column) => cell(column, i)).join(","));
  return "\ufeff" + [data.leaderboard.map((column) => quoted(column.name)).join(","), ...lines, ""].join("\r\n");
}

function download(rows, name) {
  const url = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv;charset=utf-8" }));
  const link = make("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
byId("csv-shown").addEventListener("click", () => download(boardGrid.rows, "report-scores-shown.csv"));
byId("csv-all").addEventListener("click", () => download(models.map((_, i) => i), "report-scores.csv"));

const steps = [...STEPS.keys()];
byId("legend").append("trait, in standard deviations: ",
  ...steps.map((k) => make("span", { class: `low${4 - k}` }, `\u2264 ${minus(String(-STEPS[3 - k]))}`)),
  make("span", {}, "0"), ...steps.map((k) => make("span", { class: `high${k + 1}` }, `\u2265 ${STEPS[k]}`)));

// Models -------------------------------------------------------------------------------------------------------------

const FOUND = 40;
function found(wanted) {
  const all = byRank.filter((i) => folded[i].includes(wanted));
  byId("found").replaceChildren(...all.slice(0, FOUND).map((i) => {
    const button = make("button", { type: "button", dir: "auto", title: models[i] }, models[i]);
    button.addEventListener("click", () => { chosenModel = i; model(i); });
    return make("li", { value: board.general_rank.values[i] }, button);
  }));
  counted("count-model", Math.min(FOUND, all.length), all.length, "models, best first");
}
searched(byId("search-model"), found);
found("");

function ranksOf(i) {
  const pairs = data.ranks ? data.ranks.map(({ label, values }) => [label, values[i]])
    : [["this fit", board.general_rank.values[i]], ["mean score", board.mean_score_rank.values[i]]];
  const table = make("table", { class: "plain ranks" },
    make("caption", {}, `Rank of ${show(models.length, 0)}${data.ranks ? "" : "; under other regimes not known here"}`),
    make("thead", {}, make("tr", {}, ...pairs.map(([name]) => make("th", { scope: "col", class: "num" }, name)))),
    make("tbody", {}, make("tr", {}, ...pairs.map(([, rank]) => make("td", { class: "num" }, show(rank, 0))))));
  return make("div", { class: "scroll" }, table);
}

function model(i) {
  const gaps = new Map();
  data.gaps.model.forEach((m, k) => { if (m === i) gaps.set(data.gaps.domain[k], data.gaps.kind[k]); });
  const place = make("div", { class: "drawing" });
  const se = board["se:general"].values[i];
  const words = `General trait ${show(board.general.values[i], 2)}${se === null ? "" : ` (standard error ${show(se, 2)})`}, `
    + `mean score ${show(board.mean_score.values[i], 3)}.`;
  const missing = [...gaps].flatMap(([t, kind], k) => [k ? ", " : "", bdi(data.domains[t]), ` (${kind})`]);
  byId("model").replaceChildren(
    make("h3", { dir: "auto", tabindex: -1 }, models[i]), make("p", {}, words), ranksOf(i),
    ...(missing.length ? [make("p", {}, "No answer in: ", ...missing, ".")] : []),
    make("h4", {}, "Profile"),
    make("p", { class: "word" }, "Dot: trait in the domain with two standard errors, the highest first. Grey: all models, "
      + "their middle nine tenths and their middle half. Hollow: borrowed from other domains."), place);
  const rows = traits.map((column, t) => ({ name: data.domains[t], value: column.values[i], se: gaps.has(t) ? null : errors[t + 1].values[i],
    spread: data.spread[t], note: gaps.get(t) }));
  rows.sort((x, y) => (y.value ?? -Infinity) - (x.value ?? -Infinity));
  dots(place, rows, { label: `Traits of ${isolated(models[i])} by domain`, axisName: "trait in the domain" });
}

// Items --------------------------------------------------------------------------------------------------------------

const items = data.items, itemNames = items.item.map((name, j) => {
  const domain = data.domains[items.domain[j]];
  return fold(`${domain}: ${name}\n${domain} ${name}`);
});
const sameAs = new Map(items.same_as || []);
const isNumber = (values) => values.every((v) => v === null || typeof v === "number");
const ITEM_COLUMNS = [["item", 220], ["domain", 200], ["a", 70], ["d", 70], ["b", 76], ["key", 60], ["n_options", 74],
  ["mean_score", 78], ["n_answers", 84], ["correlation", 106], ["flags", 200]];
const itemGrid = new Grid(byId("item-grid"), { size: items.item.length, label: "Items",
  pick: (j) => { item(j); byId("item").querySelector("h3").focus(); byId("item").scrollIntoView({ block: "nearest" }); },
  columns: ITEM_COLUMNS.filter(([name]) => items[name]).map(([name, width]) => {
    const values = name === "domain" ? items.domain.map((t) => data.domains[t]) : items[name], numeric = isNumber(values);
    const digits = name.startsWith("n_") ? 0 : name === "mean_score" ? 3 : 2;
    return { label: name.replace(/^n_/, "").replace("_", " "), width, values, numeric,
      name: name === "item" || name === "domain" || name === "key", first: name === "flags" || numeric ? -1 : 1,
      text: numeric ? (j) => show(values[j], digits) : (j) => values[j] };
  }) });

const kinds = [...new Set(items.flags.flatMap((flags) => flags.split(", ")))].filter(Boolean).sort();
byId("flag-item").append(make("option", { value: "" }, "any"), ...kinds.map((kind) => make("option", { value: kind }, kind)));

function filterItems() {
  const wanted = fold(byId("search-item").value.trim()), flag = byId("flag-item").value;
  itemGrid.filter((j) => itemNames[j].includes(wanted) && (!flag || items.flags[j].split(", ").includes(flag)));
  counted("count-item", itemGrid.rows.length, items.item.length, "items");
}
byId("search-item").addEventListener("input", filterItems);
byId("flag-item").addEventListener("change", filterItems);
filterItems();

function curvesOf(j) {
  if (!data.options) {
    const a = items.a[j], d = items.d[j];
    return [{ name: "right", main: true, colour: "var(--accent)", at: (theta) => 1 / (1 + Math.exp(-(a * theta + d))) }];
  }
  const o = data.options, all = [];
  for (let k = o.first[j]; k < o.first[j + 1]; k += 1) all.push(k);
  const top = (theta) => Math.max(...all.map((k) => o.a[k] * theta + o.c[k]));
  return all.map((k, n) => ({ name: o.option[k], told: `${o.right[k] ? " (key)" : ""}, chosen ${show(100 * o.share[k], 0)} %`,
    main: o.right[k] === 1, colour: COLOURS[n % COLOURS.length], dash: DASHES[Math.floor(n / COLOURS.length) % DASHES.length],
    at: (theta) => {
      const most = top(theta), part = (m) => Math.exp(o.a[m] * theta + o.c[m] - most);
      return part(k) / all.reduce((sum, m) => sum + part(m), 0);
    } }));
}

const itemName = (j) => [bdi(data.domains[items.domain[j]]), ": ", bdi(items.item[j])];

function itemButton(j) {
  const button = make("button", { type: "button", class: "link" }, ...itemName(j));
  button.addEventListener("click", () => { item(j); byId("item").querySelector("h3").focus(); });
  return button;
}

function item(j) {
  chosenItem = j;
  const place = make("div", { class: "drawing" }), list = curvesOf(j), t = items.domain[j];
  const told = [`mean score ${show(items.mean_score[j], 3)} of ${show(items.n_answers[j], 0)} answers`];
  if (items.a) told.push(`slope a = ${show(items.a[j], 2)}`, `intercept d = ${show(items.d[j], 2)}`);
  if (items.b && items.b[j] !== null) told.push(`difficulty b = ${show(items.b[j], 2)}`);
  if (items.correlation) told.push(`correlation with the general trait ${show(items.correlation[j], 2)}`);
  const legend = data.options ? [make("ul", { class: "keys" }, ...list.map((curve) =>
    make("li", { class: curve.main ? "main" : null }, mark(curve), bdi(curve.name), curve.told)))] : [];
  byId("item").replaceChildren(make("h3", { tabindex: -1 }, ...itemName(j)),
    make("p", {}, `${told.join(", ")}.`), ...(items.flags[j] ? [make("p", {}, `Flags: ${items.flags[j]}.`)] : []),
    ...(sameAs.has(j) ? [make("p", {}, "Same answers as ", itemButton(sameAs.get(j)), ".")] : []), ...legend, place,
    make("p", { class: "word" }, `Probability of ${data.options ? "each option" : "a right answer"} `
      + `by trait${data.habits ? ", for a model without a sharpness or habits of its own" : ""}; the shaded part holds the middle nine tenths of the models.`));
  curves(place, list, { bound: data.bound, band: [data.spread[t][1], data.spread[t][5]], label: `Curve of ${isolated(items.item[j])}` });
}

// ---------------------------------------------------------------------------------------------------------------------

for (const tab of tabs) tab.addEventListener("click", () => open(tab.getAttribute("aria-controls")));
open("verdict");
window.addEventListener("resize", redraw);

// On paper all parts are shown, and the grids' first rows.
const grids = [boardGrid, itemGrid];
function paper(on) {
  if (on) for (const tab of tabs) byId(tab.getAttribute("aria-controls")).hidden = false;
  for (const grid of grids) grid.print(on);
  if (on) for (const draw of Object.values(whenShown)) draw();
  else open(tabs.find((tab) => tab.getAttribute("aria-selected") === "true").getAttribute("aria-controls"));
  for (const [id, grid] of [["board-printed", boardGrid], ["items-printed", itemGrid]]) {
    const all = grid.rows.length;
    byId(id).hidden = !on || all <= PRINTED;
    byId(id).textContent = `The first ${PRINTED} of ${show(all, 0)} rows. ${id === "board-printed" ? "The csv has all." : "The page on a screen has all."}`;
  }
}
window.addEventListener("beforeprint", () => paper(true));
window.addEventListener("afterprint", () => paper(false));
document.documentElement.dataset.ready = "yes";
