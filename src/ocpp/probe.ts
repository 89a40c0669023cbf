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

/** Asks a station for its abilities. */
export async function capabilitiesOf({ calls, dialect }: Asked): Promise<Capabilities> {
  const answer = await calls.ask(dialect.capabilities());
  return answer.kind === "answered" ? answer.value : UNKNOWN_CAPABILITIES;
}

/** Sets the meter values that the daemon needs, where they differ. The former values are logged. */
export async function configureMeters(
  { calls, dialect }: Asked,
  present: Capabilities,
  { every, measurands, configure }: OcppConfig["meterValues"],
  onChanged: (setting: Setting, outcome: string) => void,
): Promise<void> {
  if (!configure) return;
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
