import { afterAll, expect, test } from "vitest";
import { mistakesIn, theMistake } from "../support/aConfiguration.ts";
import { Authority } from "../support/certificates.ts";

const secret = { env: "SECRET" };
const authority = new Authority();
afterAll(() => authority[Symbol.dispose]());
const ca = { file: authority.ca };
const { cert } = authority.issue("gateway");

test("a webhook has exactly one kind of authentication", () => {
  expect(mistakesIn({ webhook: { listen: "127.0.0.1:8090", auth: { bearer: { secret } } } })).toEqual([]);
  expect(
    mistakesIn({ webhook: { listen: "127.0.0.1:8090", auth: { bearer: { secret }, hmac: { secret } } } }),
  ).toEqual(["webhook.auth.bearer: hmac and bearer"]);
  expect(mistakesIn({ webhook: { auth: {} } })).toEqual([
    "webhook.auth: none of hmac, standardWebhooks, bearer",
  ]);
});

test("a broker has either a url or is embedded", () => {
  expect(mistakesIn({ mqtt: { embedded: {} } })).toEqual(["mqtt.embedded: url and embedded"]);
  expect(mistakesIn({ brokers: { yard: {} } })).toEqual(["brokers.yard: none of url, embedded"]);
});

test("an embedded broker with a user name needs a password", () => {
  expect(mistakesIn({ mqtt: { url: undefined, embedded: {}, username: "depot" } })).toEqual([
    "mqtt.username: a username without a password, which lets in everyone who knows the name",
  ]);
});

test("a password needs a user name, a certificate its key, and both an encrypted address", () => {
  expect(mistakesIn({ mqtt: { password: secret } })).toEqual([
    "mqtt.password: a password without a username",
  ]);
  expect(mistakesIn({ mqtt: { url: "mqtts://b", tls: { cert } } })).toEqual([
    "mqtt.tls: only one of cert and key",
  ]);
  expect(mistakesIn({ mqtt: { tls: { ca } } })).toEqual([
    "mqtt.tls: tls with mqtt://127.0.0.1:1883, which is not encrypted",
  ]);
  expect(mistakesIn({ mqtt: { url: "wss://b", username: "u", password: secret, tls: { ca } } })).toEqual([]);
});

test("two listeners cannot share a port, except port 0", () => {
  expect(mistakesIn({ webhook: { listen: "0.0.0.0:8080" } })).toEqual([
    "operator.listen: port 8080, which webhook.listen has too",
  ]);
  expect(mistakesIn({ webhook: { listen: "0.0.0.0:0" }, operator: { listen: "127.0.0.1:0" } })).toEqual([]);
});

test("the board of the page names known chargers, each once", () => {
  const site = { id: "depot", board: [["bay-01", "bay-2"], ["bay-01"]] };
  const chargers = [{ id: "bay-01", current: { max: 16 } }];
  expect(mistakesIn({ site, chargers })).toEqual([
    'site.board[0][1]: "bay-2", which is no charger',
    'site.board[1][0]: "bay-01", which site.board[0][0] has too',
  ]);
  expect(mistakesIn({ site: { id: "depot", board: [["bay-01"]] }, chargers })).toEqual([]);
});

test("planned work has an end after its begin, with offsets, and names known chargers", () => {
  const chargers = [{ id: "bay-01", current: { max: 16 } }];
  const from = "2026-11-27T22:00:00+01:00";
  const work = (more: object) => ({
    chargers,
    site: { id: "depot", maintenance: [{ name: "transformer", from, until: "2026-11-28T02:00Z", ...more }] },
  });
  expect(mistakesIn(work({ bays: ["bay-01"] }))).toEqual([]);
  expect(mistakesIn(work({}))).toEqual([]);
  expect(mistakesIn(work({ bays: ["bay-1"] }))).toEqual([
    'site.maintenance[0].bays[0]: "bay-1", which is no charger',
  ]);
  for (const until of [from, "2026-11-27T22:30:00", "2026-11-31T22:30:00Z", "22:30"])
    expect(mistakesIn(work({ until }))).toEqual([expect.stringContaining("site.maintenance[0].until: ")]);
});

test("a charger must name a configured broker", () => {
  const chargers = [{ id: "a", broker: "yrad", current: { max: 16 } }];
  expect(theMistake({ chargers, brokers: { yard: { url: "mqtt://10.0.0.1" } } })).toEqual({
    path: "chargers[0].broker",
    found: '"yrad", which is not among the brokers',
    expected: "did you mean yard? (brokers has yard), or no broker: then mqtt's",
  });
  expect(mistakesIn({ chargers })).toHaveLength(1);
});
