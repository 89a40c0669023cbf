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

/** Three publishes on `a` without an answer. */
function silent(hangUps: HangUps): void {
  for (const _ of [1, 2, 3]) hangUps.onSilence("a");
}

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

  test("a topic is set aside after three ends without an answer between, for a minute at first", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const hangUps = searching();
    hangUps.onDrop(["a"]);
    hangUps.onDrop(["a"]);
    for (const topic of ["a", "b"]) hangUps.onAnswer(topic);
    hangUps.onDrop(["a"]);
    hangUps.onDrop(["a"]);
    expect(hangUps.refusal("a")).toBeUndefined();
    expect(hangUps.onDrop(["a"])).toContain("set aside for 1 min");
    expect(hangUps.refusal("a")).toMatchObject({ ok: false, retry: false });
    vi.advanceTimersByTime(60_000);
    expect(hangUps.refusal("a")).toBeUndefined();
  });

  test("a denied topic costs one connection at each later try, ever more rarely, and an answer clears it", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const hangUps = searching();
    for (const _ of [1, 2]) hangUps.onDrop(["a"]);
    const minutes = [1, 2, 4, 8, 10, 10].map((expected) => {
      const complaint = hangUps.onDrop(["a"]);
      hangUps.onSteady();
      vi.advanceTimersByTime(expected * 60_000);
      return complaint?.slice(0, "set aside for 10".length);
    });
    expect(minutes).toEqual([1, 2, 4, 8, 10, 10].map((each) => expect.stringContaining(`for ${each}`)));
    hangUps.onAnswer("a");
    hangUps.onAnswer("b");
    expect(hangUps.isSearching).toBe(false);
    const again = searching();
    for (const _ of [1, 2]) expect(again.onDrop(["a"])).toBeUndefined();
    expect(again.onDrop(["a"])).toContain("for 1 min");
  });

  test("the search outlasts a steady connection while a topic is suspected, as its next try may be a minute away", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const hangUps = searching();
    hangUps.onDrop(["a"]);
    hangUps.onSteady();
    vi.advanceTimersByTime(60_000);
    expect(hangUps.isSearching).toBe(true);
    vi.advanceTimersByTime(120_000);
    expect(hangUps.isSearching).toBe(false);
  });

  test("the only charger of a site on a mobile link is never set aside: an answer that a second outlives clears its topic", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const hangUps = searching();
    for (const _ of [1, 2, 3, 4, 5]) {
      expect(hangUps.onDrop(["a"])).toBeUndefined();
      for (const topic of [presence, "a"]) hangUps.onAnswer(topic);
      vi.advanceTimersByTime(2_000);
      expect(hangUps.onDrop([])).toBeUndefined();
      for (const _drop of [1, 2]) hangUps.onDrop(["a", "b"]);
    }
    expect(hangUps.refusal("a")).toBeUndefined();
  });

  test("a publish that is answered late is set aside no longer", () => {
    const hangUps = new HangUps(presence);
    silent(hangUps);
    expect(hangUps.refusal("a")?.reason).toContain("set aside for 1 min: the broker does not answer");
    hangUps.onAnswer("a");
    expect(hangUps.refusal("a")).toBeUndefined();
  });

  test("a publish without an answer is tried again, and only the third in a row sets its topic aside", () => {
    const hangUps = new HangUps(presence);
    const again = () => hangUps.onSilence("a")?.retry;
    expect([again(), again()]).toEqual([true, true]);
    hangUps.onAnswer("a");
    expect([again(), again(), again()]).toEqual([true, true, false]);
    expect([hangUps.onSilence(presence), hangUps.onSilence(null)]).toEqual([undefined, undefined]);
  });

  test("a topic without answers is tried again after a minute", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const hangUps = new HangUps(presence);
    silent(hangUps);
    vi.advanceTimersByTime(60_000);
    expect([hangUps.refusal("a"), hangUps.isSearching]).toEqual([undefined, false]);
  });

  test("a presence that is answered between the ends of a weak link is not complained about", () => {
    const hangUps = searching();
    for (const _ of [1, 2, 3, 4]) {
      expect(hangUps.onDrop([presence])).toBeUndefined();
      hangUps.onAnswer(presence);
    }
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
    hangUps.onAnswer(presence);
    expect([1, 2].map(() => hangUps.onDrop([presence]))).toEqual([undefined, undefined]);
    expect(hangUps.onDrop([presence])).toContain(presence);
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

  test("a weak link does not shorten the subscriptions of a broker that took a long one, nor of any for ever", () => {
    const hangUps = new HangUps(presence);
    const lengths = [1, 2, 3, 4, 5].map(() => {
      hangUps.onDrop([null]);
      return hangUps.mostFilters;
    });
    expect(lengths).toEqual([undefined, 8, 8, undefined, undefined]);
    hangUps.onSubscribed(8);
    hangUps.onDrop([null]);
    expect(hangUps.mostFilters).toBe(8);
    hangUps.onSubscribed(9);
    expect(hangUps.mostFilters).toBeUndefined();
  });
});
