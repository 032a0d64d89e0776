// Four charts over one time axis, drawn by uPlot (vendored; a plain script that makes one global).

import { agentColour, byId, colour, fill, h, rem } from "./dom.js";
import { count, margin, percent } from "./words.js";

const CHARTS = [
  { title: "Reward (solid), floor (dashed)", lines: ["reward_mean", "floor_mean"], show: (v) => v.toFixed(3) },
  { title: "Baseline played", lines: ["conservative"], show: percent, range: [0, 1] },
  { title: "Margin: 5 % quantile (solid), least (dashed)", lines: ["margin_p05", "margin_min"], show: margin, root: true },
  { title: "Observations counted; ticks: epochs", lines: ["n"], show: count, epochTicks: true },
];

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

function times(_, splits, __, ___, step) {
  const form = step >= 86400 ? day : step >= 60 ? clock : exact;
  return splits.map((t) => form.format(new Date(t * 1000)));
}

/** Values along an axis, with as many digits as tell them apart. */
function ticks(chart) {
  return (_, splits, __, ___, step) => {
    let digits = 0;
    while (digits < 8 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
    if (chart.root) return splits.map((v) => `${v}`);
    return splits.map((v) => (chart.range || chart.epochTicks ? chart.show(v) : v.toFixed(digits)));
  };
}

/** Margins begin tiny and must be told from zero: heights are their square roots. */
const root = { distr: 100, fwd: (v) => Math.sign(v) * Math.sqrt(Math.abs(v)), inv: (v) => v * Math.abs(v) };
const ROUND = [0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Round values in a range, as far apart as labels need. */
function rootSplits(_, __, low, high) {
  const all = [...ROUND.map((v) => -v).reverse(), 0, ...ROUND].filter((v) => v >= low && v <= high);
  const apart = (root.fwd(high) - root.fwd(low)) / 6;
  const kept = [0];
  for (const v of all.filter((x) => x > 0).reverse()) {
    if (root.fwd(v) > apart && kept.slice(1).every((k) => root.fwd(k) - root.fwd(v) > apart)) kept.push(v);
  }
  for (const v of all.filter((x) => x < 0)) {
    if (root.fwd(-v) > apart && kept.every((k) => Math.abs(root.fwd(k) - root.fwd(v)) > apart)) kept.push(v);
  }
  return kept.sort((a, b) => a - b);
}

let drawn = []; // the four plots on the page
let shape = ""; // what they were made for: agents, size, colours

function options(chart, tasks, epochs, readout, size) {
  const unit = rem();
  const ink = colour("--faint");
  const font = `${0.78 * unit}px system-ui, sans-serif`;
  const axis = { stroke: ink, font, labelFont: font, ticks: { show: false }, gap: 0.3 * unit,
    grid: { stroke: colour("--line"), width: 1 } };
  const series = tasks.flatMap((task, i) => chart.lines.map((line, k) => ({
    label: `${task} ${line}`,
    stroke: agentColour(i),
    width: k ? 1.5 : Math.max(2, unit / 8),
    dash: k ? [0.35 * unit, 0.25 * unit] : i < 8 ? undefined : [unit, 0.2 * unit],
    points: { show: false },
    spanGaps: true,
  })));
  const hair = (plot, y0, y1, x0, x1, paint) => {
    const c = plot.ctx;
    c.save();
    c.strokeStyle = paint;
    c.setLineDash([]); // the last series may have left its own
    c.lineWidth = devicePixelRatio;
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
    c.stroke();
    c.restore();
  };
  return {
    ...size,
    padding: [0.6 * unit, 2.2 * unit, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "guardband" }, drag: { x: false, y: false }, points: { size: 0.5 * unit } },
    scales: { y: { ...(chart.root ? root : {}), range: chart.range ?? ((_, low, high) => paddedRange(low, high, chart.root)) } },
    series: [{}, ...series],
    axes: [
      { ...axis, size: 2.4 * unit, gap: 0.9 * unit, space: 5 * unit, values: times },
      { ...axis, size: 3.6 * unit, space: 2.4 * unit, values: ticks(chart), ...(chart.root ? { splits: rootSplits } : {}) },
    ],
    hooks: {
      draw: [(plot) => {
        const { left, top, width, height } = plot.bbox;
        if (chart.root) {
          const y = plot.valToPos(0, "y", true);
          if (y >= top && y <= top + height) hair(plot, y, y, left, left + width, colour("--bad"));
        }
        if (chart.epochTicks) {
          for (const t of epochs()) {
            const x = plot.valToPos(t, "x", true);
            if (x < left || x > left + width) continue;
            hair(plot, top + height, top + height - 0.5 * unit * devicePixelRatio, x, x, ink);
          }
        }
      }],
      setCursor: [(plot) => {
        const i = plot.cursor.idx;
        if (i === null || i === undefined) return readout(null);
        const values = plot.data.slice(1).map((row) => row[i]);
        return readout(plot.data[0][i], values);
      }],
    },
  };
}

/** A range with room above and below; for margins, around zero. */
function paddedRange(low, high, around) {
  if (low === null || high === null) return [0, 1];
  if (around) return [Math.min(1.2 * low, -0.004 * Math.max(high, 0.001)), 1.1 * Math.max(high, 0.001)];
  const [from, to] = [low, high];
  const room = 0.08 * (to - from || Math.abs(to) || 1);
  return [from === 0 ? 0 : from - room, to + room];
}

function build(tasks, epochs) {
  drawn.forEach((d) => d.plot.destroy());
  const frames = CHARTS.map((chart) => {
    const output = h("output", {});
    const place = h("div", { class: "plot", role: "img", "aria-label": `${chart.title}, over time` });
    const frame = h("figure", { class: "panel" }, h("figcaption", {}, chart.title, output), place);
    return { chart, output, place, frame };
  });
  fill(byId("charts"), frames.map((f) => f.frame));
  drawn = frames.map(({ chart, output, place }) => {
    const per = chart.lines.length;
    const readout = (t, values) => {
      output.textContent = t === null ? "" : [exact.format(new Date(t * 1000)),
        ...tasks.map((task, i) => {
          const [v, f] = values.slice(per * i, per * (i + 1));
          if (v === null || v === undefined) return null;
          return `${task} ${chart.show(v)}${f === undefined || f === null ? "" : ` / ${chart.show(f)}`}`;
        }).filter(Boolean)].join(" · ");
    };
    const size = { width: Math.floor(place.clientWidth), height: Math.floor(13 * rem()) };
    const start = [[], ...tasks.flatMap(() => chart.lines.map(() => []))];
    return { chart, plot: new globalThis.uPlot(options(chart, tasks, epochs, readout, size), start, place) };
  });
}

let epochTimes = [];

/** Show the history; plots are made anew only where agents, size or colours have changed. */
export function showCharts(history, summary) {
  const early = history.t.length < 2; // a line has two points
  byId("charts").hidden = early;
  byId("charts-hint").textContent = early ? "Drawn as soon as agents have reported twice." : "";
  if (early) return;
  const tasks = summary.agents.map((a) => a.task);
  epochTimes = summary.epochs.map((e) => e.closed_at);
  const wanted = [tasks.join("\n"), byId("charts").clientWidth, rem(), colour("--line")].join("|");
  if (wanted !== shape) {
    build(tasks, () => epochTimes);
    shape = wanted;
    fill(byId("legend"), tasks.map((task, i) => h("span", { class: `agent-${i % 8}` }, task)));
  }
  for (const { chart, plot } of drawn) {
    const rows = tasks.flatMap((task) => chart.lines.map((line) =>
      history.agents[task]?.[line] ?? history.t.map(() => null)));
    plot.setData([history.t, ...rows]);
  }
}
