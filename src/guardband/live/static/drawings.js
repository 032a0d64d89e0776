// Small drawings in SVG: the parameter with its intervals, the epochs in time, a line in a cell.

import { agentClass, h, rem, svg } from "./dom.js";
import { count, signed, span } from "./words.js";

const MOST = 24; // features shown at once

/** A line without axes, for a table's cell; `floor` is the height of a dashed line. */
export function sparkline(values, kind) {
  const points = values.map((v, i) => [i, v]).filter(([, v]) => v !== null);
  if (points.length < 2) return null;
  const ys = points.map(([, v]) => v);
  const [low, high] = [Math.min(0, ...ys), Math.max(...ys, 1e-9)];
  const place = ([i, v]) =>
    `${((80 * i) / (values.length - 1)).toFixed(1)},${(19 - (18 * (v - low)) / (high - low)).toFixed(1)}`;
  const zero = place([0, 0]).split(",")[1];
  return svg("svg", { class: `spark ${kind}`, viewBox: "0 0 80 20", "aria-hidden": "true" },
    svg("path", { class: "axis", d: `M0,${zero}H80` }),
    svg("polyline", { points: points.map(place).join(" ") }));
}

/** How much room names get on the left, and what of each fits into it. */
function labels(names, width, unit) {
  const letter = 0.47 * unit;
  const most = Math.max(4, Math.floor((0.38 * width) / letter));
  const short = (name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);
  return { label: (Math.max(...names.map((n) => short(n).length)) + 1.5) * letter, short };
}

/** The features to show: all, or those of the largest weight. */
function shown(theta) {
  const order = theta.mean.map((_, k) => k);
  if (order.length <= MOST) return order;
  return order.sort((a, b) => Math.abs(theta.mean[b]) - Math.abs(theta.mean[a])).slice(0, MOST);
}

/** An agent's own estimate of feature k, or null where its task does not use it. */
function estimate(agent, k, dim) {
  if (!agent.theta?.length) return null;
  if (agent.uses?.length && !agent.uses.includes(k)) return null;
  return agent.theta.length === dim ? agent.theta[k] : agent.theta[agent.uses.indexOf(k)];
}

/** One row per feature: the interval, the estimate, a dot for every agent. */
export function thetaChart(summary, width) {
  const theta = summary.theta;
  if (!theta?.mean?.length) return null;
  const unit = rem();
  const rows = shown(theta);
  const dim = theta.mean.length;
  const dots = (k) => summary.agents.map((a) => estimate(a, k, dim)).filter((v) => v !== null);
  const half = (k) => theta.halfwidth?.[k] ?? 0;
  // Very wide intervals at the start would squeeze everything else: they run out of the picture.
  const reach = Math.max(0.1, ...rows.flatMap((k) => [theta.mean[k], ...dots(k)]).map(Math.abs));
  const widest = Math.max(...rows.map((k) => Math.abs(theta.mean[k]) + half(k)));
  const limit = Math.min(widest, 3 * reach) * 1.08;
  const { label, short } = labels(theta.names, width, unit);
  const right = 3.9 * unit;
  const x = (v) => label + ((width - label - right) * (Math.max(-limit, Math.min(limit, v)) + limit)) / (2 * limit);
  const step = 1.75 * unit;
  const height = (rows.length + 1.2) * step;
  const drawn = rows.map((k, row) => {
    const y = (row + 0.6) * step;
    const name = theta.names[k] ?? `${k}`;
    return svg("g", {},
      svg("title", {}, `${name}: ${signed(theta.mean[k])} ± ${half(k).toFixed(3)}`),
      svg("text", { class: "name", x: label - 0.6 * unit, y: y + 0.3 * unit }, short(name)),
      svg("line", { class: "range", x1: x(theta.mean[k] - half(k)), x2: x(theta.mean[k] + half(k)), y1: y, y2: y }),
      svg("line", { class: "mean", x1: x(theta.mean[k]), x2: x(theta.mean[k]), y1: y - 0.6 * unit, y2: y + 0.6 * unit }),
      summary.agents.map((a, i, all) => {
        const v = estimate(a, k, dim);
        const aside = all.length > 1 ? (i / (all.length - 1) - 0.5) * 0.9 * unit : 0;
        return v === null ? null
          : svg("circle", { class: `${agentClass(i)}${a.heterogeneity > 1 ? " differs" : ""}`, cx: x(v), cy: y + aside, r: 0.2 * unit });
      }),
      svg("text", { class: "value", x: width - 0.2 * unit, y: y + 0.3 * unit }, signed(theta.mean[k], 2)));
  });
  const foot = rows.length * step + 0.9 * unit;
  const ticks = [-limit, 0, limit].map((v) => (v === 0 ? 0 : v / 1.08));
  const picture = svg("svg", { class: "theta", width, height, role: "img",
    "aria-label": "The shared parameter by feature, with its confidence intervals" },
  svg("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: rows.length * step }),
  ticks.map((v) => svg("text", { class: "tick", x: x(v), y: foot }, v === 0 ? "0" : signed(v, 2))),
  drawn);
  return { picture, left: dim - rows.length };
}

/** Every epoch a mark on its opener's line, in time; and the newest few in a table. */
export function epochsChart(summary, width) {
  const epochs = summary.epochs;
  if (!epochs.length) return null;
  const unit = rem();
  const tasks = summary.agents.map((a) => a.task);
  const openers = [...new Set(epochs.map((e) => e.opened_by))]
    .sort((a, b) => tasks.indexOf(a) - tasks.indexOf(b));
  const lines = openers.slice(0, 12);
  const { label, short } = labels(lines.map((n) => n ?? "?"), width, unit);
  const first = Math.min(...epochs.map((e) => e.closed_at));
  const last = Math.max(summary.now, first + 1);
  const x = (t) => label + ((width - label - unit) * (t - first)) / (last - first);
  const step = 1.9 * unit;
  const y = (e) => (Math.max(0, lines.indexOf(e.opened_by)) + 0.6) * step;
  const height = (lines.length + 1) * step;
  return svg("svg", { class: "epochs", width, height, role: "img",
    "aria-label": "Epochs in time, by the agent that asked for them" },
  lines.map((name, row) => [
    svg("text", { class: "name", x: label - 0.6 * unit, y: (row + 0.6) * step + 0.3 * unit }, short(name ?? "?")),
    svg("line", { class: "axis", x1: label, x2: width - unit, y1: (row + 0.6) * step, y2: (row + 0.6) * step }),
  ]).flat(),
  epochs.map((e) => {
    const kind = tasks.indexOf(e.opened_by);
    const size = 0.3 * unit;
    const note = svg("title", {}, `epoch ${e.epoch}: ${e.streams_in} in, ${e.streams_late} late, `
      + `${Math.round(e.duration_ms)} ms, ${count(e.n)} observations`);
    return e.streams_late
      ? svg("path", { class: "late", d: `M${x(e.closed_at)},${y(e) - 1.3 * size}l${1.3 * size},${2.4 * size}h${-2.6 * size}z` }, note)
      : svg("circle", { class: kind < 0 ? "other" : agentClass(kind), cx: x(e.closed_at), cy: y(e), r: size }, note);
  }),
  svg("text", { class: "tick start", x: label, y: height - 0.5 * unit }, `${span(last - first)} ago`),
  svg("text", { class: "tick end", x: width - unit, y: height - 0.5 * unit }, "now"));
}

/** The newest epochs in numbers. */
export function epochsTable(summary) {
  const newest = [...summary.epochs].sort((a, b) => b.epoch - a.epoch).slice(0, 5);
  const heads = ["epoch", "closed", "asked for by", "in", "late", "took", "observations"];
  return h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, newest.map((e) => h("tr", {},
      h("th", { scope: "row" }, `${e.epoch}`),
      h("td", {}, `${span(summary.now - e.closed_at)} ago`),
      h("td", {}, e.opened_by ?? "–"),
      h("td", {}, `${e.streams_in}`),
      h("td", { class: e.streams_late ? "look-text" : null }, `${e.streams_late}`),
      h("td", {}, `${Math.round(e.duration_ms)} ms`),
      h("td", {}, count(e.n))))));
}
