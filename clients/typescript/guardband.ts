// A client of the guardband sidecar, for Node and other places with fetch.
// Written by clients/typescript/generate.py from the sidecar's OpenAPI document: do not edit.

/** The reward, the discard or the override is in the journal. */
export interface Accepted {
  id: string;
  status: "kept" | "discarded" | "overridden";
}

/** Something that monitors noticed; see `gb.Alarm`. */
export interface AlarmReply {
  kind: string;
  round: number;
  evidence: number;
}

/** A certified action; see `gb.Decision.choices`. */
export interface ChoiceReply {
  action: number;
  lower: number | null;
  margin: number | null;
  value: number | null;
}

/** One round's offer. */
export interface DecideBody {
  /** one row per action: numbers, or by name where the space has named features */
  features: number[][] | (Record<string, string | boolean | number | number[] | null>)[];
  /** the row that the baseline would play, or with labels its label */
  baseline: number | string;
  /** one per action */
  labels?: (number | string)[] | null;
  /** the baseline's expected reward, where it is known */
  baseline_reward?: number | null;
  /** features in each possible context */
  support?: number[][][] | null;
  /** the contexts' chances */
  weights?: number[] | null;
  /** of the features' difference, by action */
  covariance?: number[][][] | null;
  /** what each action is worth to the caller */
  value?: number[] | null;
  /** what each action costs, paid from the budget */
  cost?: number[] | null;
  /** where tasks share contexts: the number of the round */
  round?: number | null;
}

/** What to play, why, and what is promised; see `gb.Decision`. */
export interface DecisionReply {
  id: string;
  action: number;
  kind: "learned" | "explored" | "trial" | "baseline";
  reason: string;
  mean: number | null;
  lower: number | null;
  upper: number | null;
  floor: number | null;
  propensity: number;
  margin: number | null;
  promise: string;
  certificate: string;
  certified: boolean[];
  /** the certified actions, best first */
  choices: ChoiceReply[];
  label: number | string | null;
  budget_left: number | null;
  cost: number | null;
  cost_left: number | null;
}

/** A decision that does not count, for a cause that has nothing to do with its reward. */
export interface DiscardBody {
  id: string;
  /** why */
  discard: string;
}

/** Another action than the one decided was played, by somebody who saw the features alone. */
export interface OverrideBody {
  id: string;
  /** the row of what was played */
  action: number;
}

/** Why a request failed; `code` is stable, `detail` is for reading. */
export interface ProblemDetails {
  /** urn:guardband:problem:CODE */
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
}

/** The agent is at full speed. */
export interface Readiness {
  status: "full speed";
}

/** The reward of a decision. */
export interface RewardBody {
  id: string;
  reward: number;
  /** what it cost, where that is only known afterwards */
  cost?: number | null;
}

/** How the agent is doing. */
export interface SidecarHealth {
  status: "ok";
  space: string;
  task: string;
  mode: string;
  decisions: number;
  pending: number;
  /** observations in the stream in use */
  counted: number;
  /** in streams before it, which it has not */
  counted_before: number;
  epoch: number;
  trouble: string | null;
  /** its task has left the pool */
  apart: boolean;
  /** there are alarms that nobody has looked at */
  noticed: boolean;
  alarms: AlarmReply[];
  /** the kinds of alarms that there can be */
  watched: string[];
  /** after which decisions it started anew because its pool did */
  followed: number[];
}

/** An answer that says why a request failed; `code` is stable. */
export class Refused extends Error {
  readonly problem: ProblemDetails;
  /** After how many seconds to try again; undefined: the same request fails again. */
  readonly retryAfterS: number | undefined;

  constructor(problem: ProblemDetails, retryAfterS?: number) {
    super(`${problem.code} (${problem.status}): ${problem.detail}`);
    this.name = "Refused";
    this.problem = problem;
    this.retryAfterS = retryAfterS;
  }
}

export interface Options {
  /** Where the sidecar listens; http://127.0.0.1:8711 unless given. */
  url?: string;
  /** What is in sidecar.token of its state folder. */
  token?: string;
  /** How long to wait for an answer, in milliseconds; 10 seconds unless given. */
  timeoutMs?: number;
}

/** One task's agent: ask it what to play, tell it the reward. */
export class Sidecar {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;

  constructor({ url = "http://127.0.0.1:8711", token, timeoutMs = 10_000 }: Options = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#headers = { "Content-Type": "application/json" };
    if (token !== undefined) this.#headers["Authorization"] = `Bearer ${token.trim()}`;
    this.#timeoutMs = timeoutMs;
  }

  /** Choose one of the actions, and write it down. */
  decide(body: DecideBody): Promise<DecisionReply> {
    return this.#ask("POST", "/v1/decide", body);
  }

  /** Take in the reward of a decision, or exclude it; sending it again changes nothing. */
  reward(body: RewardBody | DiscardBody): Promise<Accepted> {
    return this.#ask("POST", "/v1/reward", body);
  }

  /** Say, before the reward, that another action was played than the one decided. */
  override(body: OverrideBody): Promise<Accepted> {
    return this.#ask("POST", "/v1/override", body);
  }

  /** Say how the agent is doing; it works also while the coordinator cannot be reached. */
  healthz(): Promise<SidecarHealth> {
    return this.#ask("GET", "/healthz");
  }

  /** Say that a person has looked at the alarms; play more than the baseline again. */
  resume(): Promise<SidecarHealth> {
    return this.#ask("POST", "/v1/resume");
  }

  /** Say whether the agent is at full speed; before that it decides slowly, or by its baseline. */
  readyz(): Promise<Readiness> {
    return this.#ask("GET", "/readyz");
  }

  async #ask<Reply>(method: string, path: string, body?: unknown): Promise<Reply> {
    const answer = await fetch(this.#url + path, {
      method,
      headers: this.#headers,
      signal: AbortSignal.timeout(this.#timeoutMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.ok) return (await answer.json()) as Reply;
    const wait = answer.headers.get("Retry-After");
    const problem = (await answer.json()) as ProblemDetails;
    throw new Refused(problem, wait === null ? undefined : Number(wait));
  }
}
