// Drawings: a model's profile, an item's curves, the leading models.

const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999"]; // Okabe and Ito
const DASHES = ["none", "7 3", "2 3", "9 3 2 3"]; // one for each round of the colours

function shape(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function canvas(width, height, label) {
  return shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

const scale = (low, high, from, to) => (x) => from + ((x - low) / (high - low || 1)) * (to - from);

const ruler = document.createElement("canvas").getContext("2d");
function clip(text, width) { // to so many pixels; the whole name stays in the title
  ruler.font = `12.5px ${getComputedStyle(document.body).fontFamily}`;
  const fits = (t) => ruler.measureText(t).width <= width;
  if (fits(text)) return text;
  const letters = [...text].slice(0, 120);
  while (letters.length > 1 && !fits(`${letters.join("")}\u2026`)) letters.pop();
  return `${letters.join("")}\u2026`;
}

function axis(svg, x, low, high, top, bottom) {
  const step = [0.1, 0.2, 0.5, 1, 2].find((s) => (high - low) / s <= 8) || 5;
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9; k += 1) {
    const at = x(k * step), text = minus(String(Number((k * step).toFixed(1))));
    svg.append(shape("line", { x1: at, x2: at, y1: top, y2: bottom, class: k === 0 ? "zero" : "rule" }));
    svg.append(shape("text", { x: at, y: bottom + 16, class: "tick", "text-anchor": "middle" }, text));
  }
}

// Rows of a name, a dot with two standard errors, a value; and, behind, quantiles over all models.
// rows: {name, value, se, spread (7 quantiles) or undefined, note}
function dots(place, rows, { label, axisName }) {
  const width = place.clientWidth, line = 24, top = 6, bottom = top + rows.length * line;
  if (!width) return;
  const names = Math.min(260, Math.round(width * 0.36)), values = 52;
  const ends = rows.flatMap((r) => [...(r.spread ? [r.spread[0], r.spread[6]] : []),
    ...(r.value === null ? [] : [r.value - 2 * (r.se || 0), r.value + 2 * (r.se || 0)])]).filter((v) => v !== null);
  const low = Math.max(-8, Math.min(...ends)), high = Math.min(8, Math.max(...ends, low + 1));
  const x = scale(low, high, names + 12, width - values - 8);
  const svg = canvas(width, bottom + 40, label);
  axis(svg, x, low, high, top, bottom);
  svg.append(shape("text", { x: x((low + high) / 2), y: bottom + 34, class: "tick", "text-anchor": "middle" }, axisName));
  rows.forEach((r, k) => {
    const y = top + (k + 0.5) * line, group = shape("g", {});
    const bar = (from, to, kind) => group.append(shape("line", { x1: x(from), x2: x(to), y1: y, y2: y, class: kind }));
    const name = shape("text", { x: names, y: y + 4, class: "name", "text-anchor": "end", direction: "ltr" });
    name.append(shape("title", {}, r.name), shape("tspan", { "unicode-bidi": "isolate" }, clip(r.name, names)));
    group.append(name);
    if (r.spread && r.spread[0] !== null) {
      bar(r.spread[0], r.spread[6], "span");
      bar(r.spread[1], r.spread[5], "wide");
      bar(r.spread[2], r.spread[4], "half");
    }
    if (r.value !== null) {
      const out = (v) => Math.max(low, Math.min(high, v));
      if (r.se) bar(out(r.value - 2 * r.se), out(r.value + 2 * r.se), "error");
      group.append(shape("circle", { cx: x(out(r.value)), cy: y, r: 4.5, class: r.note ? "dot hollow" : "dot" }));
    }
    group.append(shape("text", { x: width - 2, y: y + 4, class: "value", "text-anchor": "end" }, r.value === null ? "none" : show(r.value, 2)));
    const se = r.se ? `, standard error ${show(r.se, 2)}` : "";
    group.append(shape("title", {}, `${isolated(r.name)}: ${r.value === null ? "no trait" : show(r.value, 2)}${se}${r.note ? ` (${r.note})` : ""}`));
    svg.append(group);
  });
  place.replaceChildren(svg);
}

// A curve's line beside its name.
function mark(curve) {
  const svg = shape("svg", { width: 26, height: 8, class: "mark", "aria-hidden": "true" });
  const line = shape("line", { x1: 0, x2: 26, y1: 4, y2: 4, "stroke-width": curve.main ? 4 : 2.5 });
  line.style.stroke = curve.colour;
  line.style.strokeDasharray = curve.dash || "none";
  svg.append(line);
  return svg;
}

// Probabilities by trait; curves: {name, at(theta), main, colour, dash}; band: the middle nine tenths of the models.
function curves(place, list, { bound, band, label }) {
  const width = Math.min(place.clientWidth, 640), height = 300;
  if (!width) return;
  const x = scale(-bound, bound, 44, width - 12), y = scale(0, 1, height - 44, 10);
  const svg = canvas(width, height, label);
  if (band[0] !== null) {
    svg.append(shape("rect", { x: x(band[0]), y: y(1), width: Math.max(1, x(band[1]) - x(band[0])), height: y(0) - y(1), class: "band" }));
  }
  axis(svg, x, -bound, bound, y(1), y(0));
  for (const p of [0, 0.5, 1]) {
    svg.append(shape("line", { x1: x(-bound), x2: x(bound), y1: y(p), y2: y(p), class: "rule" }));
    svg.append(shape("text", { x: 38, y: y(p) + 4, class: "tick", "text-anchor": "end" }, String(p)));
  }
  svg.append(shape("text", { x: x(0), y: height - 8, class: "tick", "text-anchor": "middle" }, "trait in the domain"));
  list.forEach((curve) => {
    const points = Array.from({ length: 121 }, (_, k) => {
      const theta = -bound + (2 * bound * k) / 120;
      return `${x(theta).toFixed(1)},${y(curve.at(theta)).toFixed(1)}`;
    });
    const path = shape("polyline", { points: points.join(" "), class: curve.main ? "curve main" : "curve" });
    path.style.stroke = curve.colour;
    path.style.strokeDasharray = curve.dash || "none";
    path.append(shape("title", {}, `${isolated(curve.name)}${curve.told || ""}`));
    svg.append(path);
  });
  place.replaceChildren(svg);
}
