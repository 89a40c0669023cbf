import { describe, expect, onTestFinished, test, vi } from "vitest";

import { HangUps, TopicEvidence } from "../../../src/chargers/broker/evidence.ts";
import { instant } from "../../../src/domain/units.ts";

test("a message proves every filter that it came by, and no other", () => {
  const evidence = new TopicEvidence(["gx/+/soc", "gx/1/soc", "gx/2/soc", "gx/+/+"], [], () => instant(0));
  evidence.received("gx/1/soc");
  evidence.received("gx/1/soc");
  evidence.received("other");
  const filters = ["gx/+/soc", "gx/1/soc", "gx/2/soc", "gx/+/+"];
  expect(filters.filter((filter) => evidence.isReceived(filter))).toEqual(["gx/+/soc", "gx/1/soc", "gx/+/+"]);
  expect([evidence.since, evidence.isAccepted("gx/1/soc")]).toEqual([null, false]);
});

describe("hang-ups", () => {
  const presence = "setpointd/depot/gateway/online";

  /** As after two short connections, so that publishes leave one at a time. */
  const searching = (): HangUps => {
    const hangUps = new HangUps(presence);
    for (const _ of [1, 2]) hangUps.onDrop(["a", "b"]);
    return hangUps;
  };

  test("a connection that is lost with several publishes in flight speaks against none of them", () => {
    const hangUps = new HangUps(presence);
    for (const _ of [1, 2, 3, 4]) expect(hangUps.onDrop(["a", "b"])).toBeUndefined();
    expect([hangUps.refusal("a"), hangUps.isSearching]).toEqual([undefined, true]);
    hangUps.onSteady();
    expect(hangUps.isSearching).toBe(false);
  });

  test("a topic is set aside after three ends without an answer between, and is tried again after ten minutes", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const hangUps = searching();
    hangUps.onDrop(["a"]);
    hangUps.onDrop(["a"]);
    for (const topic of ["a", "b"]) hangUps.onAnswer(topic);
    hangUps.onDrop(["a"]);
    hangUps.onDrop(["a"]);
    expect(hangUps.refusal("a")).toBeUndefined();
    expect(hangUps.onDrop(["a"])).toContain("set aside for 10 min");
    expect(hangUps.refusal("a")).toMatchObject({ ok: false, retry: false });
    vi.advanceTimersByTime(600_000);
    expect(hangUps.refusal("a")).toBeUndefined();
  });

  test("a broker that acknowledges a denied publish before it hangs up has the topic set aside", () => {
    const hangUps = searching();
    const complaints = [1, 2, 3].map(() => {
      for (const topic of [presence, "a", "denied"]) hangUps.onAnswer(topic);
      return hangUps.onDrop([]);
    });
    expect(complaints).toEqual([undefined, undefined, expect.stringContaining("(topic denied)")]);
    expect([hangUps.refusal("a"), hangUps.refusal("denied")]).toEqual([undefined, expect.anything()]);
  });

  test("a connection that ends a while after the latest answer, as at a second gateway, speaks against no topic", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const hangUps = searching();
    for (const _ of [1, 2, 3, 4]) {
      for (const topic of [presence, "a"]) hangUps.onAnswer(topic);
      vi.advanceTimersByTime(2_000);
      expect(hangUps.onDrop([])).toBeUndefined();
    }
    expect(hangUps.refusal("a")).toBeUndefined();
  });

  test("short connections that end after our presence speak against no topic", () => {
    const hangUps = searching();
    for (const _ of [1, 2, 3, 4]) {
      hangUps.onAnswer(presence);
      expect(hangUps.onDrop([])).toBeUndefined();
    }
  });

  test("the topic of our presence is never set aside, and named once", () => {
    const hangUps = searching();
    const complaints = [1, 2, 3, 4].map(() => hangUps.onDrop([presence]));
    expect(complaints).toEqual([undefined, undefined, expect.stringContaining(presence), undefined]);
    expect(hangUps.refusal(presence)).toBeUndefined();
  });

  test("a connection that is lost at a subscription or without a publish in flight speaks against no topic", () => {
    const hangUps = new HangUps(presence);
    expect([hangUps.onDrop([]), hangUps.mostFilters]).toEqual([undefined, undefined]);
    expect([hangUps.onDrop([null]), hangUps.mostFilters]).toEqual([undefined, undefined]);
    hangUps.onSteady();
    expect([hangUps.onDrop([null]), hangUps.mostFilters]).toEqual([undefined, undefined]);
    expect([hangUps.onDrop([null]), hangUps.mostFilters]).toEqual([undefined, 8]);
    hangUps.onSteady();
    expect(hangUps.mostFilters).toBe(8);
    expect(hangUps.onSilence(null)).toBeUndefined();
  });
});
