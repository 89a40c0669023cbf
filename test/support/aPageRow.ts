import type { AuditRow, Charger } from "../../src/operator/page/apiAnswers.ts";
import type { BrokersAway } from "../../src/operator/page/derive.ts";

/** `05:00` or `05:00:30` of one day, as ISO. */
export const at = (time: string): string =>
  `2026-11-21T${time.length === 5 ? `${time}:00` : time}Z`.replace("Z", ".000Z");

let seq = 0;

/** A row of the record, as the page gets it. Its number is above that of the rows before it. */
export const aRow = (time: string, kind: AuditRow["kind"], over: Partial<AuditRow> = {}): AuditRow => {
  seq += 1;
  return {
    seq,
    at: at(time),
    kind,
    charger: "bay-01",
    vehicle: "veh-1",
    event: "EV-1",
    command: null,
    words: "",
    facts: null,
    hash: "",
    ...over,
  };
};

/** Every broker is connected. */
export const noneAway: BrokersAway = new Set();

/** A charger that charges at 16 A on three phases. */
export const aShownCharger = (over: Partial<Charger> = {}): Charger => ({
  charger: "bay-01",
  broker: "",
  vehicle: "veh-1",
  occupant: "vehicle",
  asked: null,
  allowed: null,
  measured: { at: at("05:00"), state: "charging", powerW: 11_040, currentsA: [16, 16, 16], limitA: 16 },
  hold: null,
  online: true,
  reachable: true,
  heardAt: at("05:00"),
  verdict: "none",
  firmware: "1.4.2",
  restarts: { counted: "returns", count: 0, lastAt: null },
  reboot: null,
  command: null,
  reason: null,
  until: null,
  writes: null,
  commissioning: false,
  binding: null,
  soc: null,
  ...over,
});
