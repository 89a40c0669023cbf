import type { Logger } from "pino";

import type { OcppConfig } from "../config/ocpp.ts";
import { type Answer, type Calls, GIVES_WAY_AFTER } from "./calls.ts";
import { listOf } from "./wire/capabilities.ts";
import type { Capabilities, Dialect, Outcome, Setting } from "./wire/dialect.ts";

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

/**
 * Asks a station for its abilities. `onKnown` gets them as soon as a setpoint can be sent: those of a station that takes
 * its time are unknown at first.
 */
export async function askForCapabilities(
  on: Asked,
  station: string,
  log: Logger,
  onKnown: (capabilities: Capabilities) => void,
): Promise<Capabilities> {
  let isLate = false;
  const patience = setTimeout(() => {
    isLate = true;
    onKnown(UNKNOWN_CAPABILITIES);
  }, GIVES_WAY_AFTER);
  const answer = await on.calls.ask(on.dialect.capabilities());
  clearTimeout(patience);
  const capabilities = answer.kind === "answered" ? answer.value : UNKNOWN_CAPABILITIES;
  if (capabilities.smartCharging === false)
    log.error(
      { station },
      "the charger has no Smart Charging: every setpoint is refused, and events cannot limit it",
    );
  if (!isLate || answer.kind === "answered") onKnown(capabilities);
  return capabilities;
}

/** Sets the meter values that the daemon needs, where they differ. Beside another central system its settings stay. */
export async function configureMeters(
  { calls, dialect, upstream }: Asked & { readonly upstream: unknown },
  present: Capabilities,
  { configure, every, measurands }: OcppConfig["meterValues"],
  station: string,
  log: Logger,
): Promise<void> {
  if (!configure || upstream !== null) return;
  const wanted = { every: Math.max(1, Math.round(every / 1000)), measurands };
  const change = async (setting: Setting): Promise<Answer<Outcome>> => {
    const answer = await calls.ask(dialect.configure(setting));
    const outcome = answer.kind === "answered" ? answer.value.status : answer.reason;
    log.info({ station, ...setting, outcome }, "charger setting changed");
    return answer;
  };
  for (const setting of dialect.meterSettings(wanted, present)) {
    const answer = await change(setting);
    if (answer.kind === "closed" || answer.kind === "unsupported") return;
    if (answer.kind === "answered" && !answer.value.accepted) await changeByMember(setting, change);
  }
}

/**
 * A charger that lacks one member of a list may reject the whole list. Each member is tried beside those that it has
 * already, so the next connection writes nothing again.
 */
async function changeByMember(
  setting: Setting,
  change: (setting: Setting) => Promise<Answer<Outcome>>,
): Promise<void> {
  const [wanted, before] = [listOf(setting.value), listOf(setting.before ?? "")];
  let members = wanted.filter((member) => before.includes(member));
  for (const member of wanted.filter((each) => !before.includes(each))) {
    const more = [...members, member];
    if (more.length === wanted.length) return;
    const answer = await change({ ...setting, value: more.join(",") });
    if (answer.kind !== "answered") return;
    if (answer.value.accepted) members = more;
  }
}

/** After a reconnection a station sends no status by itself. */
export async function askForPresentState(
  { calls, dialect }: Asked,
  { remoteTrigger }: Capabilities,
  outlets: readonly { readonly config: { readonly id: number } }[],
): Promise<void> {
  if (remoteTrigger === false) return;
  // In 2.0.1 a free connector takes no vehicle away whose session is known.
  const wanted = dialect.version === "1.6" ? (["status", "meter"] as const) : (["meter", "status"] as const);
  for (const what of wanted)
    for (const { config } of outlets) {
      const answer = await calls.ask(dialect.trigger(what, config.id === 0 ? null : config.id));
      // A station that refuses one of them may send the others. One that hangs would hang again.
      if (answer.kind === "closed" || answer.kind === "unanswered") return;
    }
}
