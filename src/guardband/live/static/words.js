// What the numbers say, in words. Pure functions: no page, no network.

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
const sum = (rows, read) => rows.reduce((total, row) => total + (read(row) ?? 0), 0);

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

/** 75 -> "75 s", 4000 -> "1.1 h". */
export function span(s) {
  if (!known(s)) return "–";
  if (s < 100) return `${Math.max(0, Math.round(s))} s`;
  if (s < 6000) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${Math.round(s / 86400)} days`;
}

/** Why an agent's rewards are not compared with its floor; null: they are. */
export function notJudged(agent, config) {
  if (known(agent.lead_mean)) return null;
  if (agent.counters.untold) return "baseline reward not reported";
  if (!known(agent.sums.lead) && counted(agent) && config?.sync?.min_batch > 1) return "with the next upload";
  return "too few rewards";
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

/** The share of decisions that were not the baseline's: lately, where the history tells. */
export function learnedShare(agents, history) {
  const lately = agents.map((a) => history?.agents[a.task]?.conservative.findLast(known)).filter(known);
  if (lately.length) return 1 - lately.reduce((x, y) => x + y) / lately.length;
  const all = sum(agents, (a) => a.counters.decisions);
  return all ? 1 - sum(agents, (a) => a.counters.baseline) / all : null;
}

/** The four answers of the first row; their levels, from best to worst: good, wait, look, bad. */
export function answers(summary, history) {
  const gone = ["quarantined", "retracted", "ended"];
  const agents = summary.agents.filter((a) => !gone.includes(a.state));
  return [safe(summary, agents), earns(summary, agents), learns(summary, agents, history), alive(summary, agents)];
}

/** An alert in a sentence; a task keeps its name as it is. */
export const named = (alert) =>
  alert.task ? `${alert.task}: ${alert.text.replace(/[^.!?]$/, "$&.")}` : sentence(alert.text);

function answer(question, level, word, figure, text) {
  return { question, level, word, figure, text };
}

function safe(summary, agents) {
  const ask = (...rest) => answer("Is it safe?", ...rest);
  const [learned, explored, trials] = ["learned", "explored", "trial"].map((kind) => sum(agents, (a) => a.counters[kind] ?? 0));
  const margins = agents.map((a) => a.gauges.margin_min).filter(known);
  const least = margins.length ? Math.min(...margins) : null;
  const pages = summary.alerts.filter((a) => a.severity === "page");
  const promise = `The chance that any certificate is wrong is at most ${chance(summary.delta)}.`;
  const reused = Math.max(0, ...agents.map((a) => a.gauges.reused ?? 0));
  if (least !== null && least < 0) {
    return ask("bad", "No", margin(least), "An action was played that no certificate covers.");
  }
  if (pages.length) return ask("bad", "Look now", `${pages.length} urgent`, named(pages[0]));
  if (summary.paused !== null) {
    return ask("good", "Yes", "paused", "Learning is paused: only the baseline is played.");
  }
  if (!sum(agents, (a) => a.counters.decisions)) {
    return ask("wait", "Not yet", "", "Nothing has been decided yet.");
  }
  if (!learned && !explored && !trials) {
    return ask("good", "Yes", "baseline only", "Nothing but the baseline has been played yet.");
  }
  if (reused) {
    return ask("look", "Not promised", "rows used twice",
      `${count(reused)} rows of logs were learned that had been looked at when the agents were set up. Certificates rest on them, so the chance that one is wrong may be more than ${chance(summary.delta)}.`);
  }
  const closest = least === null ? "" : ` The closest of the latest cleared it by ${margin(least)}.`;
  const drawn = explored ? ` ${count(explored)} more were drawn by a coin; on average it clears the floor.` : "";
  const tried = trials ? ` ${count(trials)} more were trials, charged to their budget.` : "";
  return ask("good", "Yes", "every learned action was certified",
    `${count(learned)} learned decisions, each sure beforehand to clear its floor.${closest}${drawn}${tried} ${promise}`);
}

/** What the holdback measured, in words; null: there is none, or no reward yet. */
export function upliftText(uplift) {
  if (!known(uplift?.mean)) return null;
  return `${signed(uplift.low)} to ${signed(uplift.high)} per decision over the baseline, measured by ` +
    `${count(uplift.rounds)} rewards and the holdback's coin alone (95 %, at all looks together).`;
}

/** What decisions were worth to the caller, beside the baseline; null: nothing was said of it. */
export function worth(agents) {
  const of = (name) => sum(agents, (a) => a.sums[name]);
  const n = of("valued");
  return n > 0 ? { n, mean: of("value") / n, baseline: of("baseline_value") / n } : null;
}

const short = (x) => x.toPrecision(3).replace("-", "−");

export function worthText(agents) {
  const found = worth(agents);
  return found && `value ${short(found.mean)} per decision, baseline ${short(found.baseline)}`;
}

/** What was spent of the budget for costs, in words; null: there is none. Each task has its own. */
export function costText(agents, config) {
  const total = config?.budget?.total;
  if (!known(total) || !agents.length) return null;
  const spent = sum(agents, (a) => a.sums.cost);
  return `cost ${short(spent)} of ${short(total * agents.length)}`;
}

function earns(summary, agents) {
  const found = worth(agents);
  const rest = rewards(summary, agents);
  const cost = costText(agents, summary.config);
  const spent = cost === null ? "" : ` ${sentence(cost)}`;
  if (found === null) return { ...rest, text: rest.text + spent };
  // Where actions have values, rewards only have to clear the floor.
  const over = found.mean - found.baseline;
  const text = `${sentence(worthText(agents))}${spent} Rewards: ${rest.figure || rest.word}. ${rest.text}`;
  const figure = `${signed(over)} of value over the baseline`;
  if (rest.level === "bad") return { ...rest, text };
  return over > 0 ? answer(rest.question, "good", "Yes", figure, text)
    : answer(rest.question, "wait", "Not yet", figure, text);
}

function rewards(summary, agents) {
  const ask = (...rest) => answer("Does it earn?", ...rest);
  const measured = upliftText(summary.uplift);
  if (measured !== null) {
    const { mean, low, high } = summary.uplift;
    const figure = `${signed(mean)} over the baseline`;
    const share = `One decision in ${count(Math.round(1 / summary.config.holdback))} plays the baseline to compare with.`;
    const text = `Choices earn ${measured} ${share}`;
    if (low > 0) return ask("good", "Yes", figure, text);
    return high < 0 ? ask("bad", "No", figure, text) : ask("wait", "Not sure yet", figure, text);
  }
  const of = (name) => sum(agents, (a) => a.sums[name]);
  const n = sum(agents, (a) => (known(a.sums.reward) ? a.sums.counted ?? counted(a) : 0));
  if (!known(summary.lead_mean)) {
    const whys = [...new Set(agents.map((a) => notJudged(a, summary.config)).filter(Boolean))];
    return ask("wait", "Not known", "", sentence(whys.join("; ") || "too few rewards"));
  }
  const [mean, half] = [summary.lead_mean, summary.lead_halfwidth];
  const over = { mean, low: mean - half, high: mean + half };
  const base = sum(agents, (a) => (a.alpha < 1 ? (a.sums.floor ?? 0) / (1 - a.alpha) : NaN));
  const gain = base > 0 ? of("reward") / base - 1 : NaN;
  const beside = known(gain) ? `: ${signed(100 * gain, 0)} % beside the baseline` : "";
  const figure = `${signed(over.mean)} over the floor`;
  const text = `Mean reward ${(of("reward") / n).toFixed(3)} of ${count(n)} rewards${beside}. ` +
    `99 % interval of the lead: ${signed(over.low)} to ${signed(over.high)}.`;
  if (over.low > 0) return ask("good", "Yes", figure, text);
  return over.high < 0 ? ask("bad", "No", figure, text) : ask("wait", "Not sure yet", figure, text);
}

function learns(summary, agents, history) {
  const ask = (...rest) => answer("Does it learn?", ...rest);
  const share = learnedShare(agents, history);
  const held = agents.map((a) => a.gauges.conservative_recent).filter(known);
  if (summary.paused !== null) {
    return ask("wait", "Paused", "", `Paused: ${summary.paused}`);
  }
  if (share === null) return ask("wait", "Not yet", "", "No decision has been made yet.");
  const figure = `${percent(share)} other than the baseline`;
  const own = sum(agents, (a) => a.n);
  const best = held.length ? 1 - held.reduce((x, y) => x + y) / held.length : NaN;
  const text = `Lately ${percent(1 - share)} of the decisions are the baseline's. ${choices(best)}` +
    `${count(own)} observations, pooled ${count(summary.epoch)} times.`;
  // Where the most promising action is the baseline itself, little else is played and all is well.
  if (share >= 0.5 || best > 0.95) return ask("good", "Yes", figure, text);
  const stuck = agents.filter((a) => a.gauges.stuck === 1);
  if (stuck.length) {
    const [first] = stuck;
    const which = `${first.task}${stuck.length > 1 ? ` and ${stuck.length - 1} more` : ""}`;
    return ask("look", "Stuck", figure, `${text} ${which}: ${first.outlook}`);
  }
  if (share < 0.05 && !agents.some((a) => known(a.gauges.stuck))) {
    return ask("wait", "Too early to say", figure, text);
  }
  return ask("wait", "Getting there", figure, text);
}

/** What is said of the share of decisions that are the most promising action. */
function choices(best) {
  if (!known(best)) return "";
  if (best > 0.95) return "Nearly all are the most promising action. ";
  return `${percent(best)} are the most promising action; where that is not certified yet, ` +
    "a certified action that teaches about it is played. ";
}

function alive(summary, agents) {
  const ask = (...rest) => answer("Is the system running?", ...rest);
  if (!agents.length) return ask("wait", "Not yet", "", "No agent has joined yet.");
  const stale = agents.filter((a) => a.state === "stale");
  const heard = `${agents.length - stale.length} of ${agents.length} agents`;
  const since = summary.epoch ? `Pooled ${span(summary.epoch_age_s)} ago.` : "Not pooled yet.";
  const decided = sum(agents, (a) => a.counters.decisions);
  const gone = sum(agents, (a) => (a.counters.defaulted ?? 0) + (a.counters.discarded ?? 0)
    + (a.counters.orphan ?? 0) + (a.counters.lost ?? 0));
  const missing = `${percent(decided ? gone / decided : 0)} of the rewards went missing.`;
  if (stale.length === agents.length) {
    return ask("bad", "No", heard, "No agent has been heard of lately. They go on alone, safely.");
  }
  if (stale.length) {
    const names = stale.map((a) => a.task).join(", ");
    return ask("look", "In part", heard, `Not heard of lately: ${names}. ${since} ${missing}`);
  }
  const tickets = summary.alerts.filter((a) => a.severity === "ticket");
  if (tickets.length) return ask("look", "Look", heard, `${named(tickets[0])} ${since}`);
  return ask("good", "Yes", heard, `All heard of lately. ${since} ${missing}`);
}
