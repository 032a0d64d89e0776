// Asks a real sidecar, as a service would; the tests run it in Node. It ends with an error where an
// answer is not what the types and the documentation say.

import { Refused, Sidecar } from "./guardband.ts";

declare const process: { env: Record<string, string | undefined> };

const WORTH = [0.5, 0.6, 0.4];

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`not so: ${what}`);
}

async function refusal(asked: Promise<unknown>): Promise<Refused> {
  try {
    await asked;
  } catch (error) {
    if (error instanceof Refused) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

const [url, token] = [process.env["SIDECAR_URL"], process.env["SIDECAR_TOKEN"]];
check(url !== undefined && token !== undefined, "the address and the token are known");
const agent = new Sidecar({ url, token });

const menu = [[0.5, 0.2, 0.1], [0.1, 0.6, 0.2], [0.3, 0.3, 0.3]];
const worth = (row: number[]) => row.reduce((sum, x, i) => sum + x * (WORTH[i] ?? 0), 0);
for (let round = 0; round < 25; round++) {
  const offer = [...menu.slice(round % 3), ...menu.slice(0, round % 3)];
  const decision = await agent.decide({ features: offer, baseline: "a", labels: ["a", "b", "c"] });
  const played = offer[decision.action];
  check(played !== undefined && decision.certified.length === menu.length, "an action of the menu");
  check(decision.label === ["a", "b", "c"][decision.action], "its label");
  const kept = await agent.reward({ id: decision.id, reward: worth(played) });
  check(kept.status === "kept" && kept.id === decision.id, "the reward is kept");
}

const other = await agent.decide({ features: menu, baseline: 0, baseline_reward: 0.4 });
check((await agent.override({ id: other.id, action: 1 })).status === "overridden", "overridden");
check((await agent.reward({ id: other.id, reward: 0.5 })).status === "kept", "and rewarded");
const unseen = await agent.decide({ features: menu, baseline: 0 });
check((await agent.reward({ id: unseen.id, discard: "never shown" })).status === "discarded", "discarded");

const health = await agent.healthz();
check(health.decisions === 27 && health.counted === 26 && health.pending === 0, "all is counted");
check((await agent.resume()).noticed === false, "nothing was noticed");

const unknown = await refusal(agent.reward({ id: "nobody-1", reward: 0.5 }));
check(unknown.problem.code === "unknown_decision" && unknown.problem.status === 404, "a stable code");
const wrong = await refusal(agent.decide({ features: [[2, 2, 2]], baseline: 0 }));
check(wrong.problem.status === 422 && wrong.retryAfterS === undefined, "features that are too long");
const stranger = await refusal(new Sidecar({ url, token: "wrong" }).resume());
check(stranger.problem.status === 401, "another token");
// @ts-expect-error: what the API does not take, the types do not take
const typo = await refusal(agent.decide({ features: menu, base: 0 }));
check(typo.problem.status === 422, "a field that there is not");
console.log("all as it should be");
