import { expect, test } from "vitest";
import { SECRET, configured, mistakesIn } from "../../support/aConfiguration.ts";
import { Authority } from "../../support/certificates.ts";

test("a broker needs only its address", () => {
  expect(configured({}).mqtt).toEqual({
    reach: { kind: "url", url: "mqtt://127.0.0.1:1883" },
    username: null,
    password: null,
    tls: null,
    prefix: "setpointd",
  });
});

test("the embedded broker listens on this machine by default", () => {
  expect(configured({ mqtt: { url: undefined, embedded: {} } }).mqtt.reach).toEqual({
    kind: "embedded",
    listen: { host: "127.0.0.1", port: 1883 },
  });
});

test("password and certificates are read at each use (F72, F83)", () => {
  using authority = new Authority();
  const { cert, key } = authority.issue("gateway");
  const tls = { ca: { file: authority.ca }, cert: { file: cert }, key: { file: key } };
  const { mqtt } = configured({
    mqtt: { url: "mqtts://b", username: "u", password: { env: "SECRET" }, tls },
  });
  expect(mqtt.password?.()).toBe(SECRET);
  expect(mqtt.tls?.ca?.current()).toBe(authority.caText.trimEnd());
  const before = mqtt.tls?.own?.current();
  authority.issue("gateway");
  expect(mqtt.tls?.own?.current().key).not.toBe(before?.key);
});

test("further brokers are found by the name in a charger", () => {
  const { brokers, chargers } = configured({
    brokers: { yard: { url: "mqtt://10.0.0.1", tls: undefined } },
    chargers: [{ id: "a", broker: "yard", current: { max: 16 } }],
  });
  expect(brokers.get(chargers[0]?.broker ?? "")?.reach).toEqual({ kind: "url", url: "mqtt://10.0.0.1" });
});

test.each([
  ["url", "http://x"],
  ["url", "mqtt://u:p@x"],
  ["prefix", "a/#"],
  ["prefix", ""],
  ["password", "text"],
])("a broker with %s %j is refused", (key, value) => {
  expect(mistakesIn({ mqtt: { [key]: value } })).toHaveLength(1);
});
