import { map, NEVER, type Observable, interval } from "rxjs";
import { afterEach, expect, test, vi } from "vitest";

import { type Hint, polling } from "../../src/control/ingest/pipeline.ts";
import type { Fetched } from "../../src/domain/delivery.ts";
import { eventId, millis } from "../../src/domain/units.ts";
import { VtnClient } from "../../src/vtn/client.ts";
import { TokenSource } from "../../src/vtn/token.ts";
import { chance } from "../fuzz/chance.ts";
import { aDialect } from "../support/aDialect.ts";
import { startVirtualTime, virtualNow } from "../support/virtualTime.ts";
import { type AServer, aLog, aServer, json } from "../vtn/aServer.ts";

const HOUR = 3_600_000;
const HOURS = 8;
const POLL_EVERY = millis(60_000);

type Answer = AServer["answer"];
const hangUp: Answer = (response) => response.socket?.resetAndDestroy();
const token = json({ access_token: "fine" });

const everyOther = (): Answer => {
  let count = 0;
  return (response, seen) => {
    count += 1;
    json(count % 2 === 0 ? [] : {}, count % 2 === 0 ? 200 : 500)(response, seen);
  };
};

/** Fifty events every ten seconds that only a fetch by id can settle. */
const storm$ = interval(10_000).pipe(
  map((n) => Array.from({ length: 50 }, (_, i) => eventId(`EV-${n}-${i}`))),
);

afterEach(() => vi.useRealTimers());

/** A server that notes when it was asked, by the virtual clock. */
async function aPatientServer(answer: Answer) {
  const times: number[] = [];
  const server = await aServer((response, seen) => {
    times.push(Date.now());
    answer(response, seen);
  });
  return { server, times };
}

const mostInAnHour = (times: readonly number[]): number =>
  times.reduce((most, from, first) => {
    const after = times.findIndex((time) => time >= from + HOUR);
    return Math.max(most, (after < 0 ? times.length : after) - first);
  }, 0);

/** The real polling, client and token source against real servers for some virtual hours; answers when each was asked. */
async function hoursWith(identityAnswers: Answer, apiAnswers: Answer, hint$: Observable<Hint>) {
  startVirtualTime("2026-11-21T00:00:00Z");
  await using stack = new AsyncDisposableStack();
  const [identity, api] = [await aPatientServer(identityAnswers), await aPatientServer(apiAnswers)];
  stack.use(identity.server);
  stack.use(api.server);
  const clocks = { now: virtualNow, monotonic: () => performance.now(), log: aLog().log };
  const random = chance(20_261_121);
  const tokens = stack.use(
    new TokenSource({
      tokenUrl: `${identity.server.origin}/connect/token`,
      clientId: "depot",
      clientSecret: () => "hush",
      scope: null,
      random,
      ...clocks,
    }),
  );
  const client = stack.use(
    new VtnClient({
      baseUrl: api.server.origin,
      dialect: aDialect({ vtn: { family: "vtn" } }),
      tokens,
      ...clocks,
    }),
  );
  let busy = 0;
  const asking = async (asked: Promise<Fetched>): Promise<Fetched> => {
    busy += 1;
    const answer = await asked;
    busy -= 1;
    return answer;
  };
  const polls = polling(
    {
      monotonic: () => millis(performance.now()),
      random,
      list: () => asking(client.list()),
      event: (id) => asking(client.event(id)),
    },
    hint$,
    POLL_EVERY,
  ).subscribe();
  stack.defer(() => polls.unsubscribe());
  const end = Date.now() + HOURS * HOUR;
  while (Date.now() < end) {
    // The clock stands still while an answer is awaited: loopback is real.
    if (busy === 0) vi.advanceTimersToNextTimer();
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => void setImmediate(resolve));
  }
  return { tokens: identity.times, requests: api.times };
}

const scenarios: readonly (readonly [string, Answer, Answer, Observable<Hint>])[] = [
  ["F30 F35: partner and token server answer 503", json({}, 503), json({}, 503), NEVER],
  ["F32: the partner answers 500", token, json({}, 500), NEVER],
  ["F33: the partner answers 429 and does not say for how long", token, json({}, 429), NEVER],
  ["F34: the partner refuses every token", token, json({}, 401), NEVER],
  ["F34: the partner forbids us", token, json({}, 403), NEVER],
  ["F30: the partner hangs up", token, hangUp, NEVER],
  ["F32: every other answer is 500", token, everyOther(), NEVER],
  ["F35: the token server answers 500", json({}, 500), json([]), NEVER],
  ["F35: the token server hangs up", hangUp, json([]), NEVER],
  ["F34: the token server does not like our credentials", json({}, 400), json([]), NEVER],
  ["F36: tokens that live for a second", json({ access_token: "fine", expires_in: 1 }), json([]), NEVER],
  ["F60: webhooks that contradict each other all the time", token, json({}, 404), storm$],
];

test.each(scenarios)(
  "%s: for eight hours, at most 60 token requests and 360 others in any hour (L4)",
  async (_name, identity, api, hint$) => {
    const asked = await hoursWith(identity, api, hint$);
    expect(mostInAnHour(asked.tokens)).toBeLessThanOrEqual(60);
    expect(mostInAnHour(asked.requests)).toBeLessThanOrEqual(360);
    // It does go on asking.
    expect(asked.tokens.length).toBeGreaterThanOrEqual(HOURS);
  },
  60_000,
);
