"use strict";
// A table of any length: only the rows in view are in the document. Texts are set with textContent, never as markup.

const minus = (text) => text.replace(/^-(?=0\.?0*$)/, "").replace("-", "\u2212");
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const show = (value, digits) =>
  value === null || value === undefined ? "\u2013" : minus(digits ? value.toFixed(digits) : whole.format(value));
const fold = (text) => text.normalize("NFKC").toLowerCase();
// A name within a sentence or a title: its direction is its own, and the sentence's its own.
const isolated = (name) => `\u2068${name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")}\u2069`;
const bdi = (name) => make("bdi", {}, name);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// One stop of the Tab key for a group of buttons; arrows, Home and End go from one to the next.
function roving(group, selector) {
  const all = () => [...group.querySelectorAll(selector)];
  const enter = (button) => { for (const each of all()) each.tabIndex = each === button ? 0 : -1; };
  all().forEach((button, k) => { button.tabIndex = k === 0 ? 0 : -1; });
  group.addEventListener("focusin", (event) => { if (event.target.matches(selector)) enter(event.target); });
  group.addEventListener("keydown", (event) => {
    const buttons = all(), at = buttons.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined || !buttons[to]) return;
    event.preventDefault();
    buttons[to].focus();
  });
  return enter;
}

const ROW = 30, BEYOND = 8; // pixels a row, as in the style sheet; rows drawn above and below those in view
const PRINTED = 200; // rows on paper
const collator = new Intl.Collator("en", { numeric: true });

class Grid {
  // columns: {label, title, width, values, text(i), first: 1 or -1 (direction of the first click), paint(i), numeric,
  // ties: ranks that put equal values in order}
  // pick(i): what the button in the first cell does.
  constructor(place, { columns, size, label, pick }) {
    Object.assign(this, { place, columns, size, pick, sorted: null, matches: null, active: 0, start: -1 });
    this.order = Array.from({ length: size }, (_, i) => i);
    this.rows = this.order;
    this.body = make("tbody");
    this.heads = columns.map((column, c) => this.head(column, c));
    this.table = make("table", { "aria-label": label, "aria-rowcount": size + 1 },
      make("colgroup", {}, ...columns.map(() => make("col"))),
      make("thead", {}, make("tr", { "aria-rowindex": 1 }, ...this.heads)), this.body);
    this.table.querySelectorAll("col").forEach((col, c) => { col.style.width = `${columns[c].width}px`; });
    this.table.style.width = `${columns.reduce((sum, c) => sum + c.width, 0)}px`;
    place.style.scrollPaddingLeft = `${columns[0].width}px`;
    this.table.tHead.addEventListener("focusin", (event) => this.reveal(event.target.parentElement));
    place.replaceChildren(this.table);
    roving(this.table.tHead, "button");
    place.addEventListener("scroll", () => this.later(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("focusin", (event) => { this.active = Number(event.target.dataset.place); });
    new ResizeObserver(() => this.draw(true)).observe(place);
  }

  head(column, c) {
    const button = make("button", { type: "button", title: column.title || column.label }, column.label);
    button.addEventListener("click", () => this.sort(c));
    const cell = make("th", { scope: "col", class: column.numeric ? "num" : null, "aria-sort": "none" }, button);
    return cell;
  }

  sort(c, direction) {
    const column = this.columns[c], { values, ties } = column;
    const same = this.sorted && this.sorted.c === c;
    const sign = direction || (same ? -this.sorted.sign : column.first);
    const compare = column.numeric ? (x, y) => x - y : (x, y) => collator.compare(x, y);
    this.order = Array.from({ length: this.size }, (_, i) => i).sort((i, j) => {
      const x = values[i], y = values[j];
      if (x === null || y === null) return (x === null) - (y === null) || i - j; // missing ones come last
      return sign * compare(x, y) || (ties ? sign * (ties[j] - ties[i]) : 0) || i - j;
    });
    this.sorted = { c, sign };
    this.heads.forEach((head, k) =>
      head.setAttribute("aria-sort", k === c ? (sign > 0 ? "ascending" : "descending") : "none"));
    this.select();
  }

  // A heading with the focus is not under the first column: browsers leave one that is partly hidden where it is.
  reveal(cell) {
    if (cell.cellIndex === 0) return;
    const left = cell.offsetLeft, right = left + cell.offsetWidth - this.place.clientWidth;
    this.place.scrollLeft = Math.min(left - this.columns[0].width, Math.max(right, this.place.scrollLeft));
  }

  filter(matches) {
    this.matches = matches;
    this.select();
  }

  select() {
    this.rows = this.matches ? this.order.filter(this.matches) : this.order;
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.active = 0;
    this.place.scrollTop = 0;
    this.draw(true);
  }

  later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(false); });
  }

  draw(anew) {
    const height = this.place.clientHeight;
    if (!height || this.printing) return;
    this.stop();
    const last = Math.max(0, this.rows.length - Math.ceil(height / ROW));
    const start = Math.max(0, Math.min(last, Math.floor(this.place.scrollTop / ROW)) - BEYOND);
    if (!anew && Math.abs(start - this.start) < BEYOND / 2) return;
    this.start = start;
    const end = Math.min(this.rows.length, start + Math.ceil(height / ROW) + 2 * BEYOND);
    const focused = this.body.contains(document.activeElement);
    const drawn = [];
    for (let place = start; place < end; place += 1) drawn.push(this.row(place));
    this.body.replaceChildren(this.space(start), ...drawn, this.space(this.rows.length - end));
    if (focused) this.focusRow();
  }

  // The Tab key stops at one row, and that is always one in view.
  stop() {
    const top = this.place.scrollTop, room = this.place.clientHeight - this.table.tHead.offsetHeight;
    const first = Math.ceil((top - 1) / ROW), last = Math.max(first, Math.floor((top + room + 1) / ROW) - 1);
    this.active = Math.max(0, Math.min(this.rows.length - 1, Math.max(first, Math.min(last, this.active))));
    const focused = this.body.contains(document.activeElement);
    for (const button of this.body.querySelectorAll("button")) button.tabIndex = Number(button.dataset.place) === this.active ? 0 : -1;
    if (focused) this.focusRow();
  }

  // For paper: the first rows of those selected, and how many there are.
  print(on) {
    this.printing = on;
    if (!on) { this.draw(true); return; }
    const shown = Math.min(PRINTED, this.rows.length);
    this.body.replaceChildren(...Array.from({ length: shown }, (_, place) => this.row(place)));
  }

  space(count) {
    const row = make("tr", { class: "space", "aria-hidden": "true" });
    row.style.height = `${count * ROW}px`;
    return row;
  }

  row(place) {
    const i = this.rows[place];
    const cells = this.columns.map((column, c) => {
      const text = column.text(i);
      if (c === 0) {
        const button = make("button", { type: "button", dir: "auto", title: text, "data-place": place,
          tabindex: place === this.active ? 0 : -1 }, text);
        button.addEventListener("click", () => this.pick(i));
        return make("th", { scope: "row" }, button);
      }
      const kind = [column.numeric ? "num" : "", column.paint ? column.paint(i) : ""].join(" ").trim();
      return make("td", { class: kind || null, title: column.numeric ? null : text, dir: column.name ? "auto" : null }, text);
    });
    return make("tr", { "aria-rowindex": place + 2 }, ...cells);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.place.clientHeight / ROW) - 3), end = this.rows.length - 1;
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page,
      PageUp: this.active - page, Home: 0, End: end }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.active = Math.max(0, Math.min(end, to));
    const top = this.active * ROW, room = this.place.clientHeight - this.table.tHead.offsetHeight - ROW;
    this.place.scrollTop = Math.max(Math.min(this.place.scrollTop, top), top - room);
    this.draw(true);
    this.focusRow();
  }

  focusRow() {
    const button = this.body.querySelector(`button[data-place="${this.active}"]`);
    if (button) button.focus({ preventScroll: true });
  }
}
