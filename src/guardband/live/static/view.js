// The page's sections, from a summary.

import { agentClass, byId, fill, h } from "./dom.js";
import { epochsChart, epochsTable, sparkline, thetaChart } from "./drawings.js";
import {
  chance, count, counted, margin, named, percent, sentence, signed, span, STATES, stillNeeded, symbol, violations,
} from "./words.js";

const mark = (level, word) =>
  h("span", { class: `mark ${level}` }, h("span", { "aria-hidden": "true" }, symbol(level)), ` ${word}`);

export function showHead(summary) {
  const paused = summary.paused !== null;
  const badge = byId("mode");
  badge.className = `badge ${paused ? "look" : "good"}`;
  const mode = paused ? "❚❚ PAUSED" : "▶ RUNNING";
  if (badge.textContent !== mode) badge.textContent = mode; // readers of the screen say it once
  const alerts = summary.alerts.filter((a) => !a.acknowledged).length;
  const title = `${alerts ? `(${alerts}) ` : ""}${summary.space} · guardband`;
  if (document.title !== title) document.title = title;
  const epoch = summary.epoch
    ? `epoch ${summary.epoch}, ${span(summary.epoch_age_s)} ago` : "no epoch yet";
  const spent = `Of the chance δ = ${chance(summary.delta)} that any certificate is ever wrong, `
    + `${chance(summary.delta_spent)} is set aside for what has happened so far. It never runs out.`;
  const budget = summary.delta > 0 ? percent(summary.delta_spent / summary.delta) : "–";
  fill(byId("facts"), h("span", {}, epoch), h("span", {}, `settings v${summary.config_version}`),
    h("span", { title: spent }, `error budget used ${budget}`));
  const button = byId("switch");
  button.textContent = paused ? "▶ Resume learning" : "❚❚ Pause learning";
  button.dataset.paused = paused ? "yes" : "no";
}

let alertsShown = null;

/** Say alerts once: a reader of the screen must not hear them again every two seconds. */
export function showAlerts(summary, acknowledge) {
  const key = JSON.stringify(summary.alerts.map((a) => [a.id, a.severity, a.task, a.text, a.acknowledged]));
  if (key === alertsShown) return;
  alertsShown = key;
  const order = (a) => (a.acknowledged ? 2 : 0) + (a.severity === "page" ? 0 : 1);
  const sorted = [...summary.alerts].sort((a, b) => order(a) - order(b));
  fill(byId("alerts"), sorted.map((a) => {
    const level = a.severity === "page" ? "bad" : "look";
    const seen = a.acknowledged;
    const button = seen || !acknowledge ? null : h("button", {
      type: "button", "data-key": `acknowledge ${a.id} ${a.task ?? ""}`, onclick: () => acknowledge(a),
    }, "Acknowledge");
    return h("article", { class: `alert ${level}`, "data-alert": a.id },
      seen ? mark(level, "Seen") : mark(level, a.severity === "page" ? "Urgent" : "Look"),
      h("p", {}, h("strong", {}, named(a)), " ", sentence(a.remedy),
        seen ? ` Acknowledged by ${seen.by}${seen.reason ? `: ${seen.reason}` : ""}.` : ""),
      button);
  }));
}

export function showAnswers(summary) {
  fill(byId("answers"), summary.answers.map((a) => h("article", { class: `answer ${a.level}` },
    h("h2", {}, a.question),
    h("p", { class: "word" }, mark(a.level, a.word)),
    h("p", { class: "figure" }, a.figure),
    h("p", { class: "text" }, a.text))));
}

function shares(agent) {
  const { decisions = 0, learned = 0, trial = 0 } = agent.counters;
  const explored = (agent.counters.explored ?? 0) + trial;
  if (!decisions) return "–";
  const words = `learned ${percent(learned / decisions)}, explored ${percent(explored / decisions)}, `
    + `baseline ${percent(1 - (learned + explored) / decisions)}`;
  const bar = h("span", { class: "bar", role: "img", "aria-label": words, title: words },
    [["learned", learned], ["explored", explored]].map(([kind, n]) => {
      const part = h("span", { class: kind });
      part.style.width = `${(100 * n) / decisions}%`;
      return part;
    }));
  return [bar, h("span", {}, percent((learned + explored) / decisions))];
}

function missing(agent) {
  const { decisions = 0, late = 0, defaulted = 0 } = agent.counters;
  const part = (n) => percent(decisions ? n / decisions : 0);
  return `${count(agent.gauges.pending)} / ${part(late)} / ${part(defaulted)}`;
}

function earned(agent, history) {
  const rows = history?.agents[agent.task];
  const line = rows?.reward_mean?.map((v, i) => {
    const floor = rows.floor_mean?.[i] ?? null;
    return v === null || floor === null ? null : v - floor;
  });
  const spark = line ? sparkline(line, "lead") : null;
  const more = agent.notes.map((text) => h("small", { class: "aside" }, text));
  if (agent.unjudged && agent.uplift) {
    return h("span", { title: agent.uplift_text }, `${signed(agent.uplift.mean, 2)} over the baseline`, more);
  }
  if (agent.unjudged) return h("span", { class: "hint" }, agent.unjudged, more);
  return [spark, h("span", {}, `${signed(agent.lead_mean, 2)} ± ${agent.lead_halfwidth.toFixed(2)}`, more)];
}

const MEANINGS = {
  violations: "learned actions that were played without a certificate, among the latest 1,000 decisions",
  "least margin": "by how much the closest of the latest learned actions was certified to clear its floor",
  "reward over floor": "mean, and an interval that holds with 99 % at all looks together",
};

export function showAgents(summary, history, onWhy) {
  byId("later").hidden = !summary.agents.length;
  if (!summary.agents.length) {
    fill(byId("agents"), firstAgent(summary));
    return;
  }
  const columns = ["agent", "decisions", "learned", "reward over floor", "violations", "least margin",
    "pending / late / defaulted", "epoch lag", "last seen", "state", ""];
  const cell = (i, value, kind) => h("td", { "data-name": columns[i] || null, class: kind ?? null },
    h("div", { class: "cell" }, value));
  const rows = summary.agents.map((a, i) => {
    const [level, word] = STATES[a.state] ?? ["look", a.state];
    const least = a.gauges.margin_min;
    const broken = least < 0 ? "number bad-text" : "number";
    const lease = typeof a.lease_s === "number" ? h("small", {}, `lease ${span(a.lease_s)}`) : null;
    const logged = a.sums.logged ? ` · ${count(a.sums.logged)} rows of logs` : "";
    const note = `${a.uses.length} features · α ${a.alpha}${logged}`;
    return h("tr", { class: `state-${a.state}` },
      h("th", { scope: "row" },
        h("span", { class: `dot ${agentClass(i)}`, "aria-hidden": "true" }), a.task,
        h("small", {}, note)),
      cell(1, count(a.counters.decisions ?? 0), "number"),
      cell(2, shares(a)),
      cell(3, earned(a, history)),
      cell(4, violations(a), broken),
      cell(5, margin(least), broken),
      cell(6, missing(a), "number"),
      cell(7, count(a.epoch_lag), "number"),
      cell(8, h("span", {}, span(a.last_seen_s), lease), "number"),
      cell(9, mark(level, word)),
      cell(10, h("button", { type: "button", "data-key": `why-${a.task}`, onclick: () => onWhy(a.task),
        "aria-label": `Why is ${a.task} conservative?` }, "Why?")));
  });
  fill(byId("agents"), h("table", { class: "agents" },
    h("thead", {}, h("tr", {}, columns.map((c, i) =>
      h("th", { scope: "col", class: [1, 4, 5, 6, 7, 8].includes(i) ? "number" : null, title: MEANINGS[c] },
        c || h("span", { class: "unseen" }, "why conservative"))))),
    h("tbody", {}, rows)));
}

function firstAgent(summary) {
  const dim = summary.config.features?.length ?? 3;
  const code = `agent = gb.connect(\n    "${location.origin}", token="gb_...",\n`
    + `    space="${summary.space}", task="my-task",\n)`;
  return [h("p", {}, `No agent has joined yet. Make a token for one, then start it (it gets ${dim} features):`),
    h("pre", {}, `guardband token create --space ${summary.space} --task my-task\n\n${code}`)];
}

/** Why an agent plays the baseline: what, how often, what is missing, what would help. */
export function showWhy(agent, texts, onThis) {
  const all = Object.values(agent.reasons).reduce((x, y) => x + y, 0);
  const decided = agent.counters.decisions ?? 0;
  const reasons = Object.entries(agent.reasons).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  const recent = agent.gauges.conservative_recent;
  const facts = wanting(agent);
  const rows = reasons.map(([key, n]) => {
    const { text, remedy } = texts?.[key] ?? { text: key, remedy: "" };
    const part = h("span", { class: "baseline" });
    part.style.width = `${(100 * n) / all}%`;
    return h("li", {},
      h("div", { class: "row" }, h("strong", {}, key), h("span", { class: "bar wide" }, part),
        h("span", { class: "number" }, `${count(n)} (${percent(n / all)})`)),
      h("p", {}, `${sentence(text)} `, h("em", {}, remedy)));
  });
  fill(byId("why-body"),
    h("h2", { id: "why-title" }, `Why is ${agent.task} conservative?`),
    h("p", { class: "now" }, "Now: ", agent.why || "its last report does not say."),
    agent.outlook ? h("p", { class: "outlook" }, `Outlook, from recent menus: ${agent.outlook}`) : null,
    h("p", {}, decided
      ? `${count(all)} of ${count(decided)} decisions were conservative (${percent(all / decided)}).`
      : "It has not decided anything yet.",
    typeof recent === "number" ? ` Lately: ${percent(recent)}.` : ""),
    rows.length ? h("ul", { class: "reasons" }, rows) : null,
    facts.length ? [h("h3", {}, "What it has, what it needs"), h("dl", {}, facts)] : null);
  const dialog = byId("why");
  if (onThis && !dialog.open) dialog.showModal();
}

function wanting(agent) {
  const g = agent.gauges;
  const facts = [["observations", `${count(agent.n)} of its own, ${count(g.foreign_n)} of others in its last epoch`],
    ["rewards", `${count(counted(agent))} counted, ${count(g.pending)} awaited`],
    ["epoch", `${count(agent.epoch)}${agent.epoch_lag ? `, ${agent.epoch_lag} behind` : ", the newest"}`]];
  if (typeof g.lambda_required === "number") {
    const gap = g.lambda_required - (g.lambda_min ?? 0);
    facts.push(["gate", `lambda_min(V) ${(g.lambda_min ?? 0).toPrecision(3)} of ${g.lambda_required.toPrecision(3)} needed`
      + (gap > 0 ? "" : ": open")]);
    const more = stillNeeded(agent);
    if (more) facts.push(["still needed", `about ${count(more)} observations, if each tells as much as those so far`]);
  }
  if (typeof g.beta === "number") facts.push(["confidence radius", g.beta.toPrecision(3)]);
  if (g.reused) facts.push(["reused", `${count(g.reused)} rows of logs had been looked at before: promises are “reused”`]);
  if (typeof g.budget_left === "number") facts.push(["budget", `${g.budget_left.toPrecision(3)} left for plays that are not certified`]);
  for (const note of agent.notes) facts.push(["noted", note]);
  if (typeof g.cost_left === "number") {
    facts.push(["cost", `${(agent.sums.cost ?? 0).toPrecision(3)} spent on decisions that ended, ${g.cost_left.toPrecision(3)} granted and left`]);
  }
  if (agent.counters.overridden) facts.push(["overridden", `${count(agent.counters.overridden)} decisions: somebody played another action`]);
  if (typeof agent.lease_s === "number") facts.push(["lease", `${span(agent.lease_s)} left`]);
  return facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
}

export function showLearned(summary) {
  const place = byId("theta");
  const chart = thetaChart(summary, place.clientWidth);
  byId("theta-hint").textContent = chart
    ? `The weight of every feature: estimate (bar) and confidence interval (band) from all data; a dot for each agent's own estimate.`
      + (chart.left > 0 ? ` The ${chart.left} smallest are left out.` : "")
    : "Shown as soon as agents have pooled for the first time.";
  fill(place, chart?.picture);
}

export function showEpochs(summary) {
  const place = byId("epochs");
  const chart = epochsChart(summary, place.clientWidth);
  byId("epochs-hint").textContent = chart
    ? `Every mark is an epoch: all agents' data pooled, on the line of the agent that asked for it; a triangle where one came late.`
    : "An epoch begins when an agent has learned enough to share.";
  fill(place, chart, chart ? h("div", { class: "scroll" }, epochsTable(summary)) : null);
}

const detailOf = (detail) => {
  if (detail === null || detail === undefined) return "";
  if (typeof detail !== "object") return `${detail}`;
  return Object.entries(detail).map(([k, v]) =>
    `${k} ${typeof v === "object" ? JSON.stringify(v) : v}`).join(", ");
};

export function showEvents(summary) {
  const newest = [...summary.events].sort((a, b) => b.seq - a.seq);
  if (!newest.length) {
    fill(byId("events"), h("p", { class: "hint" }, "Nothing has happened yet."));
    return;
  }
  fill(byId("events"), h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ["when", "who", "what", "detail"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, newest.map((e) => {
      const at = new Date(e.at * 1000);
      return h("tr", {},
        h("td", {}, h("time", { datetime: at.toISOString(), title: at.toString() }, `${span(summary.now - e.at)} ago`)),
        h("td", {}, e.who), h("td", {}, e.what), h("td", {}, detailOf(e.detail)));
    }))));
}

/** No space yet: how to make one. */
export function showEmpty() {
  fill(byId("empty"), h("h2", {}, "No space yet"),
    h("p", {}, "A space is what agents agree on: the features, the promise, the rules. Make one, where the server's data folder is:"),
    h("pre", {}, `guardband space create home --features price,fresh,rating --agents 3`),
    h("p", {}, "Or see it all at work, with simulated users: ", h("code", {}, "guardband demo")));
}
