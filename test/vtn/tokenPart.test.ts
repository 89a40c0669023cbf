import { expect, test, vi } from "vitest";
import { instant, millis } from "../../src/domain/units.ts";
import { TokenSource } from "../../src/vtn/token.ts";
import { type AServer, aLog, aServer, drip, json } from "./aServer.ts";

const MINUTE = 60_000;

/** A token server and a source that asks it, in a time of their own. */
async function aSource(answer: AServer["answer"], scope: string | null = "spk.spotprice spk.forecast") {
  const server = await aServer(answer);
  const { log, lines } = aLog();
  const time = { now: 0, fraction: 1, secret: (): string => "hush+&=%" };
  const source = new TokenSource({
    tokenUrl: `${server.origin}/connect/token?tenant=7`,
    clientId: "depot north",
    clientSecret: () => time.secret(),
    scope,
    deadline: millis(300),
    now: () => instant(time.now),
    monotonic: () => time.now,
    random: () => time.fraction,
    log,
  });
  return {
    server,
    source,
    time,
    lines,
    async [Symbol.asyncDispose]() {
      await source[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

let issued = 0;
const issuing =
  (life?: unknown): AServer["answer"] =>
  (response, seen) => {
    issued += 1;
    json({ access_token: `token-${issued}`, ...(life === undefined ? {} : { expires_in: life }) })(
      response,
      seen,
    );
  };
const down = json("{}", 500);

test("the request is the form of partner-interface 5, and access_token is all it needs back", async () => {
  await using it = await aSource(issuing());
  expect((await it.source.get()).kind).toBe("token");
  expect(it.server.seen[0]).toMatchObject({
    method: "POST",
    url: "/connect/token?tenant=7",
    body: "grant_type=client_credentials&scope=spk.spotprice+spk.forecast&client_id=depot+north&client_secret=hush%2B%26%3D%25",
  });
  expect(it.server.seen[0]?.headers["content-type"]).toBe("application/x-www-form-urlencoded");
});

test("a scope of null is left out", async () => {
  await using it = await aSource(issuing(), null);
  await it.source.get();
  expect(it.server.seen[0]?.body).not.toContain("scope");
});

test("many askers at once cost one request", async () => {
  await using it = await aSource(issuing());
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => it.source.get()));
  expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome))).size).toBe(1);
  expect(it.server.seen).toHaveLength(1);
});

test("the token is renewed in the background at 80 % of its life, while the old one is still used", async () => {
  await using it = await aSource(issuing(3600));
  const first = await it.source.get();
  it.time.now = 47 * MINUTE;
  expect(await it.source.get()).toEqual(first);
  expect(it.server.seen).toHaveLength(1);
  it.time.now = 48 * MINUTE;
  expect(await it.source.get()).toEqual(first);
  await vi.waitFor(async () => expect(await it.source.get()).not.toEqual(first));
  expect(it.server.seen).toHaveLength(2);
});

test("F35: a valid token outlives a token server that is down, which is asked once a minute at most", async () => {
  await using it = await aSource(issuing(3600));
  const first = await it.source.get();
  it.server.answer = down;
  for (let minute = 48; minute < 60; minute += 1) {
    it.time.now = minute * MINUTE;
    expect(await it.source.get()).toEqual(first);
    await vi.waitFor(() =>
      expect(it.lines.filter((line) => line.includes("no access"))).toHaveLength(minute - 47),
    );
    it.time.now += MINUTE / 2;
    expect(await it.source.get()).toEqual(first);
  }
  expect(it.server.seen).toHaveLength(1 + 12);
  it.server.answer = issuing(3600);
  it.time.now = 62 * MINUTE;
  expect((await it.source.get()).kind).toBe("token");
});

test("F36: a token of a few seconds is renewed before its end", async () => {
  await using it = await aSource(issuing(5));
  const first = await it.source.get();
  it.time.now = 4000;
  expect(await it.source.get()).toEqual(first);
  await vi.waitFor(async () => expect(await it.source.get()).not.toEqual(first));
  const second = await it.source.get();
  it.server.answer = down;
  it.time.now = 8900;
  expect(await it.source.get()).toEqual(second);
  it.time.now = 9000;
  expect((await it.source.get()).kind).toBe("failed");
});

test("L4: tokens that always live for a second leave requests for the rest of the hour", async () => {
  await using it = await aSource(issuing(1));
  let without = 0;
  for (it.time.now = 0; it.time.now < 120 * MINUTE; it.time.now += 1000) {
    if ((await it.source.get()).kind === "failed") without += 1;
  }
  expect(without).toBe(0);
  expect(it.server.seen.length).toBeLessThanOrEqual(120);
});

test("while there is no token, tries back off, and a refusal names the time of the next try", async () => {
  await using it = await aSource(down);
  expect(await it.source.get()).toMatchObject({ kind: "failed", status: 500, retryAfter: 1000 });
  // In the words of the failure itself: whoever tells news once must not take the wait for other news.
  expect(await it.source.get()).toMatchObject({
    kind: "failed",
    status: null,
    retryAfter: 1000,
    reason: "the token server answered 500",
  });
  expect(it.server.seen).toHaveLength(1);
  it.time.now = 1000;
  expect(await it.source.get()).toMatchObject({ retryAfter: 2000 });
  it.time.now = 3000;
  it.server.answer = json({}, 429, { "retry-after": "120" });
  expect(await it.source.get()).toMatchObject({ status: 429, retryAfter: 120_000 });
  it.time.now = 123_000;
  it.server.answer = json({ error: "invalid_client" }, 400);
  expect(await it.source.get()).toMatchObject({ status: 400, retryAfter: 60_000 });
});

test("a depot of gateways does not ask a recovering token server in step: the whole back-off is drawn by chance", async () => {
  await using it = await aSource(down);
  it.time.fraction = 0.25;
  expect(await it.source.get()).toMatchObject({ status: 500, retryAfter: 250 });
  it.time.now = 250;
  it.time.fraction = 0;
  expect(await it.source.get()).toMatchObject({ status: 500, retryAfter: 0 });
  it.time.fraction = 0.5;
  expect(await it.source.get()).toMatchObject({ status: 500, retryAfter: 2000 });
  // Chance shortens neither a Retry-After nor the wait after refused credentials.
  it.time.now = 2250;
  it.time.fraction = 0;
  it.server.answer = json({ error: "invalid_client" }, 400);
  expect(await it.source.get()).toMatchObject({ status: 400, retryAfter: 60_000 });
});

test("an operator ends the wait after an outage, but neither a Retry-After nor that after refused credentials", async () => {
  await using it = await aSource(down);
  await it.source.get();
  it.source.endBackoff();
  expect(await it.source.get()).toMatchObject({ status: 500, retryAfter: 2000 });
  it.source.endBackoff();
  it.server.answer = json({}, 429, { "retry-after": "120" });
  expect(await it.source.get()).toMatchObject({ status: 429 });
  it.source.endBackoff();
  expect(await it.source.get()).toMatchObject({ status: null, retryAfter: 120_000 });
  it.time.now = 120_000;
  it.server.answer = json({ error: "invalid_client" }, 400);
  expect(await it.source.get()).toMatchObject({ status: 400 });
  it.source.endBackoff();
  expect(await it.source.get()).toMatchObject({ status: null, retryAfter: 60_000 });
  expect(it.server.seen).toHaveLength(4);
});

test("an operator does not have a third token asked for that the partner would refuse too", async () => {
  await using it = await aSource(issuing(3600));
  for (let refusals = 0; refusals < 2; refusals += 1) {
    const outcome = await it.source.get();
    if (outcome.kind === "token") it.source.drop(outcome.token);
  }
  it.source.endBackoff();
  expect((await it.source.get()).kind).toBe("failed");
  expect(it.server.seen).toHaveLength(2);
});

test("L4: at most 60 token requests are sent in an hour, whatever happens", async () => {
  await using it = await aSource(issuing(1));
  for (it.time.now = 0; it.time.now < 60 * MINUTE; it.time.now += 10_000) {
    const outcome = await it.source.get();
    if (outcome.kind === "token") it.source.drop(outcome.token);
  }
  expect(it.server.seen.length).toBeLessThanOrEqual(60);
  expect(it.server.seen.length).toBeGreaterThan(30);
});

test("F34: a refused token is replaced at once, a second one within the minute is not", async () => {
  await using it = await aSource(issuing(3600));
  const use = async () => {
    const outcome = await it.source.get();
    if (outcome.kind === "token") it.source.drop(outcome.token);
    return outcome.kind;
  };
  expect(await use()).toBe("token");
  it.time.now = 1000;
  expect(await use()).toBe("token");
  expect(await use()).toBe("failed");
  it.time.now = 61_000;
  expect(await use()).toBe("token");
  it.source.drop("a token of long ago");
});

test("F36: tokens that are huge, no text, or carry line breaks are refused", async () => {
  for (const bad of ["", "a b", "a\r\nX-Evil: 1", "ü", "x".repeat(8193), 7, null, ["a"]]) {
    await using it = await aSource(json({ access_token: bad }));
    expect((await it.source.get()).kind).toBe("failed");
  }
});

test("F37 F38 F42: HTML, a redirect, a flood and a dripping body are no token", async () => {
  const elsewhere = await aServer(issuing());
  for (const answer of [
    json("<html>", 200),
    json({}, 302, { location: `${elsewhere.origin}/` }),
    json({ access_token: "a", padding: "x".repeat(70_000) }),
    drip,
  ]) {
    await using it = await aSource(answer);
    expect((await it.source.get()).kind).toBe("failed");
  }
  expect(elsewhere.seen).toHaveLength(0);
  await elsewhere[Symbol.asyncDispose]();
});

test("F71: a rotated client secret is used at the next request, and one that cannot be read is no crash", async () => {
  await using it = await aSource(issuing(3600));
  it.time.secret = () => {
    throw new Error("ENOENT");
  };
  expect(await it.source.get()).toMatchObject({ reason: "the client secret cannot be read" });
  it.time.secret = () => "new";
  it.time.now = 2000;
  expect((await it.source.get()).kind).toBe("token");
  expect(it.server.seen[0]?.body).toContain("client_secret=new");
});

test("neither the secret nor the token is ever logged", async () => {
  await using it = await aSource(issuing(3600));
  const outcome = await it.source.get();
  it.server.answer = json({ error: "hush+&=%" }, 400);
  if (outcome.kind === "token") it.source.drop(outcome.token);
  await it.source.get();
  expect(it.lines).toHaveLength(2);
  expect(it.lines.join("")).not.toMatch(/hush|token-\d/);
});

test.each([
  [
    400,
    { error: "invalid_client" },
    "answered 400 (invalid_client): check vtn.clientId and vtn.clientSecret",
  ],
  [400, { error: "invalid_scope" }, "answered 400 (invalid_scope): check vtn.scope"],
  [400, { error: "hush+&=% is wrong" }, "answered 400: check vtn.clientId and vtn.clientSecret"],
  [401, "<html>", "answered 401: check vtn.clientId and vtn.clientSecret"],
  [404, { error_description: "hush+&=%" }, "answered 404: check vtn.tokenUrl"],
  [302, {}, "answered 302: check vtn.tokenUrl"],
])(
  "a refusal with %d %j names the address without its query, and the keys to check",
  async (status, body, words) => {
    await using it = await aSource(json(body, status));
    const reason = `${it.server.origin}/connect/token ${words}`;
    expect(await it.source.get()).toMatchObject({ kind: "failed", status, reason });
    expect(JSON.stringify(it.lines)).not.toContain("hush");
  },
);

test("the end of the token in use is known, from before its request", async () => {
  await using site = await aSource(issuing(300));
  expect(site.source.expiresAt()).toBeNull();
  site.time.now = MINUTE;
  expect(await site.source.get()).toMatchObject({ kind: "token" });
  expect(site.source.expiresAt()).toBe(MINUTE + 300_000);
});
