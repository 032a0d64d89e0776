// Numbers in words; sentences come from the coordinator. Pure functions: no page, no network.

const LEVELS = { good: "✓", wait: "…", look: "!", bad: "✕" };

export const STATES = {
  ok: ["good", "ok"],
  conservative: ["wait", "conservative"],
  paused: ["wait", "paused"],
  shadow: ["wait", "shadow"],
  stale: ["bad", "stale"],
  quarantined: ["look", "quarantined"],
  retracted: ["look", "retracted"],
  ended: ["wait", "ended"],
};

export const symbol = (level) => LEVELS[level] ?? "";

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const known = (x) => typeof x === "number" && Number.isFinite(x);

/** 1234567 -> "1.23 M"; below ten thousand every digit counts. */
export function count(x) {
  if (!known(x)) return "–";
  if (Math.abs(x) < 1e4) return plain.format(x);
  const [scale, unit] = Math.abs(x) < 1e6 ? [1e3, "k"] : Math.abs(x) < 1e9 ? [1e6, "M"] : [1e9, "G"];
  return `${Number((x / scale).toPrecision(3))} ${unit}`;
}

/** 0.1234 -> "+0.123". */
export function signed(x, digits = 3) {
  if (!known(x)) return "–";
  return `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(digits)}`;
}

/** A margin: however small, it is not zero. */
export function margin(x) {
  const size = Math.abs(x);
  if (!known(x) || size === 0 || size >= 0.001) return signed(x);
  return size < 1e-4 ? `${x < 0 ? "−" : "+"}${size.toExponential(0)}` : signed(x, 4);
}

/** 0.0123 -> "1.2 %". */
export function percent(x) {
  if (!known(x)) return "–";
  const p = 100 * x;
  const digits = p !== 0 && Math.abs(p) < 9.95 && Math.abs(p - Math.round(p)) > 0.04 ? 1 : 0;
  return `${p.toFixed(digits)} %`;
}

/** "no news" -> "No news." */
export function sentence(text) {
  const whole = `${text ?? ""}`.trim();
  if (!whole) return "";
  return whole[0].toUpperCase() + whole.slice(1) + (/[.!?]$/.test(whole) ? "" : ".");
}

/** A probability, however small. */
export const chance = (x) => (known(x) ? `${Number((100 * x).toPrecision(2))} %` : "–");

/** 75 -> "75 s", 4000 -> "67 min". */
export function span(s) {
  if (!known(s)) return "–";
  if (s < 100) return `${Math.max(0, Math.round(s))} s`;
  if (s < 6000) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${Math.round(s / 86400)} days`;
}

/** Of how many played actions it is known that no certificate covered them. */
export function violations(agent) {
  const least = agent.gauges.margin_min;
  if (known(least)) return least < 0 ? "≥ 1" : "0";
  return agent.counters.learned ? "–" : "0";
}

/** How many observations more the gate takes, if information grows with them as it has so far. */
export function stillNeeded(agent) {
  const { lambda_min: has, lambda_required: needs, own_n: own, foreign_n: others } = agent.gauges;
  if (![has, needs, own].every(known) || !(has > 0) || needs <= has) return null;
  return Math.ceil((own + (others ?? 0)) * (needs / has - 1));
}

export const counted = (agent) => (agent.counters.observed ?? 0) + (agent.counters.defaulted ?? 0);

/** An alert in a sentence; a task keeps its name as it is. */
export const named = (alert) =>
  alert.task ? `${alert.task}: ${alert.text.replace(/[^.!?]$/, "$&.")}` : sentence(alert.text);
