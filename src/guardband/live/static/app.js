// The dashboard: ask the coordinator every two seconds, show what it says.
//
// EventSource cannot send a token but in the address, where logs keep it; a summary is small and
// made from memory, so the page polls instead, and stops polling while it is hidden.

import * as api from "./api.js";
import { showCharts } from "./charts.js";
import { byId, fill, h } from "./dom.js";
import * as view from "./view.js";
import { span } from "./words.js";

const EVERY_MS = 2000;
const HISTORY_EVERY = 2; // polls

const state = {
  role: null, space: null, spaces: [], summary: null, history: null, polls: 0, heard: 0, why: null, asked: null,
};
let timer = 0;

function show(section) {
  for (const id of ["login", "empty", "main"]) byId(id).hidden = id !== section;
  const inside = section === "main";
  for (const id of ["mode", "facts", "one-space"]) byId(id).hidden = !inside;
  byId("picker").hidden = !inside || state.spaces.length < 2;
  byId("switch").hidden = !inside || state.role !== "admin";
}

function trouble(text) {
  byId("trouble").hidden = !text;
  if (byId("trouble").textContent !== text) byId("trouble").textContent = text;
}

async function load() {
  state.role ??= (await api.me()).role;
  state.spaces = (await api.spaces()).map((line) => line.space);
  if (!state.spaces.includes(state.space)) state.space = state.spaces[0] ?? null;
  if (state.space === null) {
    view.showEmpty();
    show("empty");
    return;
  }
  fill(byId("space"), state.spaces.map((name) => h("option", {}, name)));
  byId("space").value = state.space;
  byId("one-space").textContent = state.spaces.length < 2 ? state.space : "";
  const wanted = state.space;
  const summary = await api.summary(wanted);
  if (state.polls % HISTORY_EVERY === 0 || state.history === null) {
    state.history = await api.past(wanted, byId("hours").value);
  }
  if (wanted !== state.space) return;
  state.summary = summary;
  state.polls += 1;
  show("main");
  draw();
}

function draw() {
  const { summary, history } = state;
  if (summary === null || byId("main").hidden) return;
  view.showHead(summary);
  view.showAlerts(summary, state.role === "admin" ? askAcknowledge : null);
  view.showAnswers(summary);
  view.showAgents(summary, history, why);
  if (history !== null) showCharts(history, summary);
  view.showLearned(summary);
  view.showEpochs(summary);
  view.showEvents(summary);
  if (byId("why").open) why(state.why);
  fill(byId("foot"), `guardband · ${summary.config.algorithm ?? ""} · as of `,
    h("time", {}, new Date(summary.now * 1000).toLocaleTimeString("en-GB")));
}

function why(task) {
  const agent = state.summary.agents.find((a) => a.task === task);
  state.why = task;
  if (agent) view.showWhy(agent, state.summary.reasons, true);
}

async function poll() {
  clearTimeout(timer);
  if (!api.hasToken()) {
    show("login");
    return;
  }
  try {
    await load();
    state.heard = Date.now();
    trouble("");
  } catch (error) {
    if (error instanceof api.Refused && error.status === 401) {
      api.forgetToken();
      state.role = null;
      byId("login-error").textContent = `That token was not accepted: ${error.message}`;
      trouble("");
      show("login");
      return;
    }
    const since = state.heard ? ` What you see is ${span((Date.now() - state.heard) / 1000)} old.` : "";
    const cause = error instanceof api.Refused ? error.message : "it cannot be reached";
    trouble(`✕ The coordinator does not answer: ${cause}.${since} Agents go on by themselves; trying again.`);
  }
  if (!document.hidden) timer = setTimeout(poll, EVERY_MS);
}

/** Ask before something is done; what is asked for a reason is done with it. */
function ask({ title, text, go, reasoned, act }) {
  byId("ask-title").textContent = title;
  byId("ask-text").textContent = text;
  byId("ask-go").textContent = go;
  byId("ask-error").textContent = "";
  byId("ask-reason").hidden = byId("reason").disabled = !reasoned;
  state.asked = act;
  byId("ask").showModal();
}

function askSwitch() {
  const paused = state.summary.paused !== null;
  const verb = paused ? "Resume" : "Pause";
  ask({
    title: `${verb} learning in ${state.space}?`,
    text: paused
      ? "Agents go back to what they have learned, as soon as they hear of it."
      : "Every agent plays the baseline only, as soon as it hears of it, until learning is resumed. Rewards still count.",
    go: `${verb} learning`,
    reasoned: !paused,
    act: (reason) => (paused ? api.resume(state.space) : api.pause(state.space, reason)),
  });
}

function askAcknowledge(alert) {
  ask({
    title: `Acknowledge ${alert.id}${alert.task ? ` of ${alert.task}` : ""}?`,
    text: "It stops paging, and stays on this page until its cause is gone. Nothing else changes.",
    go: "Acknowledge",
    reasoned: true,
    act: (reason) => api.acknowledge(state.space, alert, reason),
  });
}

async function doAsked(event) {
  event.preventDefault();
  byId("ask-go").disabled = true;
  try {
    await state.asked(byId("reason").value.trim());
    byId("ask").close();
    byId("ask-form").reset();
    await poll();
  } catch (error) {
    byId("ask-error").textContent = error.message;
  } finally {
    byId("ask-go").disabled = false;
  }
}

function start() {
  state.space = api.fromAddress();
  byId("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    api.keepToken(byId("token").value);
    byId("token").value = "";
    byId("login-error").textContent = "";
    poll();
  });
  byId("space").addEventListener("change", () => {
    state.space = byId("space").value;
    state.history = null;
    history.replaceState(null, "", `#space=${encodeURIComponent(state.space)}`);
    poll();
  });
  byId("hours").addEventListener("change", () => {
    state.history = null;
    poll();
  });
  byId("switch").addEventListener("click", askSwitch);
  byId("ask-form").addEventListener("submit", doAsked);
  byId("ask-cancel").addEventListener("click", () => byId("ask").close());
  document.addEventListener("visibilitychange", () => document.hidden || poll());
  window.addEventListener("hashchange", () => {
    state.space = api.fromAddress() ?? state.space;
    poll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
  });
  poll();
}

start();
