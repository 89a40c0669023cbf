import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

import { type Explanation, get, type Hold, post, Refused, remove, requestKey, type Scope } from "./api.ts";
import { compliance, eventsNow } from "./derive.ts";
import { amps, kilowatts, levelText, nearTime } from "./format.ts";
import { Dialog, ReasonField } from "./parts.tsx";
import { type CommandsBefore, Running, scopeName } from "./holdEffect.tsx";
import { chargers, events, loadDepartures, loadHolds, now, zone } from "./store.ts";
import { t } from "./texts.ts";

type Open =
  | { readonly kind: "new"; readonly scope: Scope }
  | {
      readonly kind: "running";
      readonly hold: Hold;
      readonly since: number;
      readonly before: CommandsBefore;
    }
  | { readonly kind: "end"; readonly hold: Hold };

const open = signal<Open | null>(null);

export const overrideVehicle = (vehicle: string): void => {
  open.value = { kind: "new", scope: { vehicle } };
};
export const overrideSite = (): void => {
  open.value = { kind: "new", scope: { site: true } };
};
export const endOverride = (hold: Hold): void => {
  open.value = { kind: "end", hold };
};

/** The dialogs of overrides. One at most is open. */
export function HoldDialogs() {
  const shown = open.value;
  if (shown === null) return null;
  const close = (): void => {
    open.value = null;
  };
  switch (shown.kind) {
    case "new":
      return <NewHold scope={shown.scope} onClose={close} />;
    case "running":
      return <Running hold={shown.hold} since={shown.since} before={shown.before} onClose={close} />;
    case "end":
      return <EndHold hold={shown.hold} onClose={close} />;
  }
}

/** Chargers that a scope concerns now. */
const underScope = (scope: Scope) =>
  chargers.all.value.filter(
    ({ charger, vehicle }) =>
      "site" in scope || ("charger" in scope ? charger === scope.charger : vehicle === scope.vehicle),
  );

type End = "events" | "at" | "unplugged" | "energy";

const problemText = (error: unknown): string =>
  error instanceof Refused ? [error.message, error.detail].filter(Boolean).join(". ") : String(error);

/** The first time offered, in ms from now. */
const DEFAULT_LENGTH = 3_600_000;

function NewHold({ scope, onClose }: { readonly scope: Scope; readonly onClose: () => void }) {
  const words = t.hold;
  const who = scopeName(scope);
  const under = underScope(scope);
  const hasEvent = under.some(({ asked }) => asked !== null);
  const [kind, setKind] = useState<"exempt" | "level">("exempt");
  const [current, setCurrent] = useState("16");
  const [end, setEnd] = useState<End>(hasEvent ? "events" : "at");
  const [time, setTime] = useState(() => clockIn(now.value + DEFAULT_LENGTH));
  const [energy, setEnergy] = useState("20");
  const [reason, setReason] = useState("");
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [why, setWhy] = useState<Explanation | null>(null);
  const [key] = useState(requestKey);

  useEffect(() => {
    if (!("vehicle" in scope)) return;
    void get<Explanation>(`explain?vehicle=${encodeURIComponent(scope.vehicle)}`).then(
      setWhy,
      () => undefined,
    );
  }, []);

  const until = (): object =>
    end === "events"
      ? { events: true }
      : end === "unplugged"
        ? { unplugged: true }
        : end === "energy"
          ? { energyWh: Number(energy) * 1000 }
          : { at: new Date(nextTime(time)).toISOString() };

  const submit = async (): Promise<void> => {
    setBusy(true);
    setTrouble("");
    const level = kind === "level" ? { level: { currentA: Number(current) } } : {};
    try {
      const since = now.value;
      const before = new Map(under.map(({ charger, command }) => [charger, command]));
      const hold = await post<Hold>(
        "holds",
        { scope, kind, ...level, until: until(), reason: reason.trim() },
        { "idempotency-key": key },
      );
      void loadHolds().catch(() => undefined);
      void loadDepartures().catch(() => undefined);
      open.value = { kind: "running", hold, since, before };
    } catch (error) {
      setTrouble(problemText(error));
      setBusy(false);
    }
  };

  const ends = [
    ["events", words.untilEvents],
    ["at", words.untilTime],
    ...("site" in scope
      ? []
      : ([
          ["unplugged", words.untilUnplugged],
          ["energy", words.untilEnergy],
        ] as const)),
  ] as const;

  return (
    <Dialog title={words.title(who)} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <fieldset>
          <legend>{words.kind}</legend>
          <div class="choices">
            <label class="choice">
              <input
                type="radio"
                name="kind"
                checked={kind === "exempt"}
                onChange={() => setKind("exempt")}
              />
              <span>{words.exempt}</span>
            </label>
            <label class="choice">
              <input type="radio" name="kind" checked={kind === "level"} onChange={() => setKind("level")} />
              <span>{words.level}</span>
            </label>
            {kind === "level" && (
              <input
                type="number"
                class="short"
                min={1}
                max={1000}
                step="any"
                required
                aria-label={words.amperes}
                value={current}
                onInput={({ currentTarget }) => setCurrent(currentTarget.value)}
              />
            )}
            {kind === "level" && <span>{words.amperes}</span>}
          </div>
        </fieldset>
        <fieldset>
          <legend>{words.until}</legend>
          <div class="choices">
            {ends.map(([name, label]) => (
              <label key={name} class="choice">
                <input
                  type="radio"
                  name="until"
                  checked={end === name}
                  disabled={name === "events" && !hasEvent}
                  onChange={() => setEnd(name)}
                />
                <span>{label}</span>
              </label>
            ))}
            {end === "at" && (
              <input
                type="time"
                class="short"
                required
                aria-label={words.time}
                value={time}
                onInput={({ currentTarget }) => setTime(currentTarget.value)}
              />
            )}
            {end === "energy" && (
              <input
                type="number"
                class="short"
                min={1}
                max={1000}
                step="any"
                required
                aria-label={words.energy}
                value={energy}
                onInput={({ currentTarget }) => setEnergy(currentTarget.value)}
              />
            )}
            {end === "energy" && <span>{words.energy}</span>}
          </div>
          {!hasEvent && <p class="hint">{words.noEvents}</p>}
        </fieldset>
        <ReasonField label={words.reason} presets={words.presets} value={reason} onChange={setReason} />
        <div class="consequence" aria-live="polite">
          <h3>{words.will}</h3>
          <ul>
            {consequences(scope, who, kind, current, why).map((line) => (
              <li key={line}>{line}</li>
            ))}
            <li>{endLine(end, time, energy)}</li>
          </ul>
        </div>
        <p class="problem" role="alert">
          {trouble === "" ? "" : `${words.failed}: ${trouble}`}
        </p>
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            {words.cancel}
          </button>
          <button class="strong" disabled={isBusy || reason.trim() === ""}>
            {words.submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** `HH:MM` in the zone of the site. */
const clockIn = (at: number): string =>
  new Intl.DateTimeFormat("en-GB", {
    timeZone: zone.value,
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).format(at);

/** The next moment at which the clocks of the site show this time. Searched by minute, so that a change of the clocks counts. */
function nextTime(clock: string): number {
  const first = Math.ceil((now.value + 1) / 60_000) * 60_000;
  for (let minute = 0; minute <= 24 * 60; minute += 1)
    if (clockIn(first + minute * 60_000) === clock) return first + minute * 60_000;
  return first;
}

function endLine(end: End, time: string, energy: string): string {
  const words = t.hold;
  switch (end) {
    case "events":
      return words.untilText(words.untilEvents);
    case "at":
      return words.untilAt(nearTime(zone.value, nextTime(time), now.value));
    case "unplugged":
      return words.untilText(words.untilUnplugged);
    case "energy":
      return words.untilText(`${energy} ${words.energy} ${words.untilEnergy.split(" ").at(-1)}`);
  }
}

/** What the override will do, and to whom, in sentences. */
function consequences(
  scope: Scope,
  who: string,
  kind: "exempt" | "level",
  current: string,
  why: Explanation | null,
): readonly string[] {
  const words = t.hold;
  const under = underScope(scope);
  const limited = under.filter(({ asked }) => asked !== null);
  const most = why?.without.most ?? null;
  const after =
    kind === "level"
      ? amps(Number(current) || 0)
      : most === null
        ? t.level.release
        : words.upTo(levelText(most));
  const [only] = under;
  const before = only?.allowed ?? null;
  const beforeText =
    before === null || before.kind === "release"
      ? t.level.release
      : before.kind === "pause"
        ? t.level.pause
        : before.kind === "power"
          ? kilowatts(before.value ?? 0)
          : amps(before.value ?? 0);
  const first =
    "site" in scope
      ? words.siteGets(limited.length)
      : limited.length === 0 && kind === "exempt"
        ? words.getsSame(who, after)
        : words.gets(who, after, beforeText);
  const deviations = eventsNow(events.all.value, now.value).active.flatMap(({ id, name }) => {
    const { good, total } = compliance(id, chargers.all.value);
    const leaving = limited.filter(({ asked }) => asked?.event === id).length;
    return leaving === 0 ? [] : [words.compliance(name ?? id, Math.max(0, good - leaving), total)];
  });
  return [first, ...("site" in scope ? [] : [words.others]), ...deviations];
}

function EndHold({ hold, onClose }: { readonly hold: Hold; readonly onClose: () => void }) {
  const words = t.hold;
  const [reason, setReason] = useState(words.endPresets[0] ?? "");
  const [trouble, setTrouble] = useState("");
  const submit = async (): Promise<void> => {
    try {
      await remove(`holds/${encodeURIComponent(hold.id)}`, { reason: reason.trim() });
      void loadHolds().catch(() => undefined);
      onClose();
    } catch (error) {
      setTrouble(problemText(error));
    }
  };
  return (
    <Dialog title={words.endTitle(scopeName(hold.scope))} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p>{words.endWill}</p>
        <ReasonField label={words.reason} presets={words.endPresets} value={reason} onChange={setReason} />
        <p class="problem" role="alert">
          {trouble === "" ? "" : `${words.failed}: ${trouble}`}
        </p>
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            {words.cancel}
          </button>
          <button class="strong" disabled={reason.trim() === ""}>
            {words.endSubmit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
