import { expect, test } from "vitest";

import {
  answered,
  clockMovedBack,
  decidedAgain,
  followed,
  followedNoLonger,
  isAlarming,
  isFirstPublish,
  leftObserved,
  lent,
  newCommand,
  notFollowed,
  observedOnly,
  published,
  publishFailed,
  rampRestarted,
  releaseWhileLent,
  restored,
  retriedAt,
  returned,
  withFailuresOf,
  withOutcomeOf,
} from "../../../src/control/send/commands.ts";
import { type CommandRecord, MOST_RESENDS } from "../../../src/domain/command.ts";
import { minutes, seconds } from "../../../src/domain/units.ts";
import { commandRecord } from "../../store/sqlite/words.ts";
import { at } from "../../support/anEvent.ts";

const RAMP = seconds(30);
const REFRESH = minutes(5);
const { command } = commandRecord("bay-01", 1);
const planned = newCommand(command, null);
const acknowledged = published(planned, REFRESH, RAMP, at("05:00"));
const withResends = (resends: number): CommandRecord => ({ ...acknowledged, resends });

test("a command is planned until the broker acknowledges it, however often a publish fails", () => {
  const failed = publishFailed(publishFailed(planned));
  expect(failed).toMatchObject({ progress: "planned", failures: 2, sentAt: null });
  expect(published(failed, REFRESH, RAMP, at("05:00"))).toMatchObject({
    progress: "acknowledged",
    failures: 0,
    sends: 1,
    sentAt: at("05:00"),
    judgeAt: at("05:00:30"),
  });
});

test("a refresh keeps the state and the time of the next judgement", () => {
  const accepted = answered(acknowledged, true);
  expect([isFirstPublish(planned), isFirstPublish(acknowledged)]).toEqual([true, false]);
  expect(published(accepted ?? planned, REFRESH, RAMP, at("05:05"))).toMatchObject({
    progress: "accepted",
    sends: 2,
    outAt: at("05:00"),
    sentAt: at("05:05"),
    judgeAt: at("05:00:30"),
    resends: 0,
  });
});

test("a refused command of a charger without refresh is retried, each time after twice the wait", () => {
  const refused = answered(acknowledged, false) ?? planned;
  const retried = published(refused, null, RAMP, at("05:01"));
  expect(retried).toMatchObject({ progress: "refused", resends: 1, judgeAt: at("05:02") });
  expect(published(refused, undefined, RAMP, at("05:01")).resends).toBe(0);
});

test("a charger may answer before the broker does", () => {
  const early = answered(planned, true) ?? planned;
  expect(published(early, REFRESH, RAMP, at("05:00"))).toMatchObject({
    progress: "accepted",
    judgeAt: at("05:00:30"),
  });
});

test("the same answer again is nothing new, and a measurement counts more than an answer", () => {
  const refused = answered(acknowledged, false) ?? planned;
  expect([refused.progress, answered(refused, false), answered(refused, true)?.progress]).toEqual([
    "refused",
    null,
    "accepted",
  ]);
  const explained = answered(acknowledged, false, "busy");
  expect([refused.refusal, explained?.refusal]).toEqual([null, "busy"]);
  const follows = followed(acknowledged, RAMP, at("05:01"));
  const ignores = notFollowed(acknowledged, RAMP, at("05:01")) ?? planned;
  expect([answered(follows, true), answered(follows, false), answered(ignores, true)]).toEqual([
    null,
    null,
    null,
  ]);
  expect(answered(ignores, false)?.progress).toBe("refused");
});

test("a command that is not followed is sent again three times, then an alarm follows, once", () => {
  let record = acknowledged;
  for (let tries = 1; tries <= MOST_RESENDS; tries += 1) {
    record = notFollowed(record, RAMP, at("05:10")) ?? planned;
    expect([record.progress, record.resends, isAlarming(record)]).toEqual(["notFollowed", tries, false]);
  }
  expect(record.judgeAt).toBe(at("05:14"));
  expect(retriedAt(record, at("05:30"))).toMatchObject({ resends: MOST_RESENDS - 1, judgeAt: at("05:30") });
  record = notFollowed(record, RAMP, at("05:14")) ?? planned;
  expect(isAlarming(record)).toBe(true);
  expect(notFollowed(record, RAMP, at("05:30"))).toBeNull();
});

test("after the alarm only a charger that follows steadily counts as following", () => {
  const alarmed = { ...withResends(MOST_RESENDS + 1), progress: "notFollowed" } as const;
  const short = followed(alarmed, RAMP, at("05:10"));
  expect([short.progress, short.followedAt]).toEqual(["notFollowed", at("05:10")]);
  expect(followedNoLonger(short)?.followedAt).toBeNull();
  expect(followedNoLonger(alarmed)).toBeNull();
  expect(followed(short, RAMP, at("05:15"))).toMatchObject({ progress: "followed", resends: 0 });
});

test("retries are forgotten after a command was followed for long enough", () => {
  const retried = followed(withResends(2), RAMP, at("05:10"));
  expect(retried.progress).toBe("followed");
  expect(notFollowed(retried, RAMP, at("05:11"))?.resends).toBe(3);
  expect(notFollowed(retried, RAMP, at("05:15"))?.resends).toBe(1);
});

test("a charger that returns gets the ramp time once more, and never less than it had", () => {
  expect(rampRestarted(planned, RAMP, at("05:10"))).toBe(planned);
  expect(rampRestarted(acknowledged, RAMP, at("05:10")).judgeAt).toBe(at("05:10:30"));
  expect(rampRestarted(acknowledged, RAMP, at("04:00")).judgeAt).toBe(at("05:00:30"));
});

test("F21: after the clock was set back a command is not judged later than it would have been", () => {
  expect(clockMovedBack(planned, RAMP, at("04:00"))).toBe(planned);
  expect(clockMovedBack(acknowledged, RAMP, at("04:00"))).toMatchObject({
    judgeAt: at("04:00:30"),
    followedAt: null,
  });
  const steady = { ...acknowledged, followedAt: at("05:01") };
  expect(clockMovedBack(steady, RAMP, at("04:00")).followedAt).toBe(at("04:00"));
});

test("an observed decision keeps the last command that was published", () => {
  expect(observedOnly(planned, undefined)).toEqual({ ...planned, progress: "observed" });
  const observed = observedOnly(planned, acknowledged);
  expect(observed).toMatchObject({ progress: "observed", standing: acknowledged });
  expect(observedOnly(planned, observed).standing).toBe(acknowledged);
});

test("after commissioning the same content is planned under a new number", () => {
  const away = { ...lent(followed(acknowledged, RAMP, at("05:01"))), standing: planned };
  const again = decidedAgain(away, { epoch: 9, seq: 4 }, { kind: "pause" });
  expect(again).toMatchObject({
    command: { ...command, epoch: 9, seq: 4 },
    progress: "planned",
    replaces: { kind: "pause" },
    sentAt: null,
    isLent: false,
  });
  expect(["standing", "outAt"].filter((name) => name in again)).toEqual([]);
});

test("a trial keeps the release that was pending before it, and returns the former command under a higher number", () => {
  const release = { ...command, desired: { kind: "release" } as const };
  const first = releaseWhileLent(release, undefined);
  expect(first).toMatchObject({ isLent: true, progress: "planned", replaces: { kind: "pause" } });
  expect("standing" in first).toBe(false);
  expect(releaseWhileLent(release, acknowledged).standing).toBe(acknowledged);
  const released = { ...acknowledged, command: release };
  expect("standing" in releaseWhileLent(release, released)).toBe(false);
  expect(returned(lent(acknowledged), { ...release, epoch: 9, seq: 4 })).toEqual({
    ...acknowledged,
    command: { ...command, epoch: 9, seq: 4 },
    isLent: false,
  });
  expect(leftObserved(first)).toMatchObject({ progress: "observed", isLent: false });
});

test("a start judges a published command after the ramp time, and keeps a judgement that is set", () => {
  expect(restored(planned, RAMP)).toBe(planned);
  expect(restored(acknowledged, minutes(5)).judgeAt).toBe(acknowledged.judgeAt);
  expect(restored({ ...acknowledged, judgeAt: null }, RAMP).judgeAt).toBe(at("05:00:30"));
});

test("after a failed commit a publish keeps its outcome, and neither failures nor retries are forgotten", () => {
  expect(withFailuresOf(planned, publishFailed(planned)).failures).toBe(1);
  expect(withOutcomeOf(planned, acknowledged)).toEqual({ ...acknowledged, outAt: planned.outAt });
  const refused = answered(acknowledged, false) ?? planned;
  const again = published(acknowledged, REFRESH, RAMP, at("05:05"));
  expect(withOutcomeOf(refused, again)).toEqual({ ...refused, sentAt: at("05:05"), sends: 2 });
  const [few, many] = [withResends(1), { ...withResends(2), judgeAt: at("06:00") }];
  expect(withOutcomeOf(few, many)).toMatchObject({ resends: 2, judgeAt: at("06:00") });
  expect(withOutcomeOf(many, few)).toMatchObject({ resends: 2, judgeAt: at("06:00") });
});
