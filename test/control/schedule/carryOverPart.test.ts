import { expect, test } from "vitest";

import { Agenda } from "../../../src/control/schedule/agenda.ts";
import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { Revised } from "../../../src/control/schedule/agenda.ts";
import { carryingOver } from "../../../src/control/schedule/schedule.ts";
import { hasMark, type Mark, setMark } from "../../../src/control/schedule/vehiclePlan.ts";
import { eventId, instant, vehicleId } from "../../../src/domain/units.ts";
import { runToEnd } from "../../../src/platform/cooperative.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { aDispatch } from "../../support/anEvent.ts";

const bus = vehicleId("veh-1");
const window = (event: string, from: number, until = from + 10): Dispatch =>
  aDispatch({ vehicle: bus, from: instant(from), until: instant(until) }, { id: event });

function agendaOf(...dispatches: readonly Dispatch[]): Agenda {
  const agenda = new Agenda(settingsWith());
  for (const dispatch of dispatches) runToEnd(agenda.replace(dispatch.event.id, [dispatch], instant(0)));
  return agenda;
}

/** The last evaluation. */
const isCovered = ({ from }: Dispatch): boolean => from <= instant(50);

function marksAfter(
  before: readonly Dispatch[],
  after: readonly Dispatch[],
  marked: { readonly evaluated?: Dispatch; readonly unplugged?: Dispatch },
) {
  for (const mark of ["evaluated", "unplugged"] as const)
    if (marked[mark] !== undefined) setMark(marked[mark], mark);
  runToEnd(
    carryingOver({ before: agendaOf(...before), after: agendaOf(...after), vehicles: [bus], isCovered }),
  );
  const having = (mark: Mark): readonly string[] =>
    after.filter((dispatch) => hasMark(dispatch, mark)).map(({ event }) => event.id);
  return { evaluated: having("evaluated"), unplugged: having("unplugged") };
}

test("dispatches that were evaluated, or recorded as at no charger, stay so when everything is planned again", () => {
  const [evaluated, unplugged, open] = [window("EV-1", 45), window("EV-2", 46), window("EV-3", 47)];
  const after = [window("EV-1", 45), window("EV-2", 46), window("EV-3", 47)];
  expect(marksAfter([evaluated, unplugged, open], after, { evaluated, unplugged })).toEqual({
    evaluated: ["EV-1"],
    unplugged: ["EV-2"],
  });
});

test("F21: a window that is no longer planned was accounted for, if it began before the last evaluation", () => {
  expect(marksAfter([], [window("EV-1", 20), window("EV-2", 50), window("EV-3", 51)], {})).toEqual({
    evaluated: ["EV-1", "EV-2"],
    unplugged: [],
  });
});

test("another window of the same event is another window", () => {
  const evaluated = window("EV-1", 60);
  expect(marksAfter([evaluated], [window("EV-1", 61)], { evaluated }).evaluated).toEqual([]);
  expect(marksAfter([evaluated], [window("EV-2", 60)], { evaluated }).evaluated).toEqual([]);
});

test("a window of which only the end was edited is the same window, acted on or not", () => {
  const [evaluated, open] = [window("EV-1", 40), window("EV-2", 40)];
  const after = [window("EV-1", 40, 90), window("EV-2", 40, 90)];
  expect(marksAfter([evaluated, open], after, { evaluated }).evaluated).toEqual(["EV-1"]);
});

test("a window that was acted on under an earlier revision is not missed under the next, one that starts anew may be", () => {
  const before = window("EV-1", 20);
  const [longer, later] = [window("EV-1", 20, 90), window("EV-1", 30)];
  setMark(before, "evaluated");
  runToEnd(new Revised().marking(before.event.id, [before], [longer, later], instant(25)));
  expect([longer, later].map((dispatch) => hasMark(dispatch, "evaluated"))).toEqual([true, false]);
  const [unseen, next] = [window("EV-1", 20), window("EV-1", 20, 90)];
  runToEnd(new Revised().marking(unseen.event.id, [unseen], [next], instant(25)));
  expect(hasMark(next, "evaluated")).toBe(false);
});

/** An event that was acted on goes, and comes again, while the clock says so much; answers whether it counts as acted on. */
function comesAgain(now: number, between: (revised: Revised) => void = () => {}): boolean {
  const [before, again] = [window("EV-1", 20), window("EV-1", 20)];
  setMark(before, "evaluated");
  const revised = new Revised();
  runToEnd(revised.marking(before.event.id, [before], [], instant(now)));
  between(revised);
  runToEnd(revised.marking(before.event.id, [], [again], instant(now)));
  return hasMark(again, "evaluated");
}

test("F21: a window that was acted on and lies ahead again after a clock set back is not missed when its event is withdrawn and returns", () => {
  expect(comesAgain(10)).toBe(true);
  // With the time known the next look finds it, and weighs it.
  expect(comesAgain(25)).toBe(false);
  expect(comesAgain(10, (revised) => revised.forget(eventId("EV-1")))).toBe(false);
});
