import type { Logger } from "pino";

import type { OcppConfig } from "../config/ocpp.ts";
import type { Calls } from "./calls.ts";
import type { Capabilities, Dialect, Setting } from "./wire/dialect.ts";

/** Abilities of a station that reports none. It is commanded all the same: its answers decide. */
const UNKNOWN_CAPABILITIES: Capabilities = {
  smartCharging: null,
  remoteTrigger: null,
  maxStackLevel: null,
  units: null,
  settings: new Map(),
};

interface Asked {
  readonly calls: Calls;
  readonly dialect: Dialect;
}

/** Asks a station for its abilities, and sets its meter values. Its former settings are logged. */
export async function prepare(
  on: Asked & { readonly upstream: unknown },
  meterValues: OcppConfig["meterValues"],
  station: string,
  log: Logger,
): Promise<Capabilities> {
  const answer = await on.calls.ask(on.dialect.capabilities());
  const capabilities = answer.kind === "answered" ? answer.value : UNKNOWN_CAPABILITIES;
  // Beside another central system its settings stay.
  if (meterValues.configure && on.upstream === null)
    await configureMeters(on, capabilities, meterValues, (setting, outcome) =>
      log.info({ station, ...setting, outcome }, "charger setting changed"),
    );
  if (capabilities.smartCharging === false)
    log.error(
      { station },
      "the charger has no Smart Charging: every setpoint is refused, and events cannot limit it",
    );
  return capabilities;
}

/** Sets the meter values that the daemon needs, where they differ. */
async function configureMeters(
  { calls, dialect }: Asked,
  present: Capabilities,
  { every, measurands }: OcppConfig["meterValues"],
  onChanged: (setting: Setting, outcome: string) => void,
): Promise<void> {
  const wanted = { every: Math.max(1, Math.round(every / 1000)), measurands };
  for (const setting of dialect.meterSettings(wanted, present)) {
    const answer = await calls.ask(dialect.configure(setting));
    onChanged(setting, answer.kind === "answered" ? answer.value.status : answer.reason);
    if (answer.kind === "closed" || answer.kind === "unsupported") return;
  }
}

/** After a reconnection a station sends no status by itself. */
export async function askForPresentState(
  { calls, dialect }: Asked,
  { remoteTrigger }: Capabilities,
  connectors: readonly number[],
): Promise<void> {
  if (remoteTrigger === false) return;
  for (const connector of connectors)
    for (const what of ["status", "meter"] as const) {
      const answer = await calls.ask(dialect.trigger(what, connector === 0 ? null : connector));
      if (answer.kind !== "answered") return;
    }
}
