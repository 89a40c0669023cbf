import { useEffect, useState } from "preact/hooks";

import type { Level, OpenedHold, Scope } from "./apiAnswers.ts";
import { isUnheard } from "./derive.ts";
import { amps, kilowatts, levelText, loadedPhase, setpointText, span } from "./format.ts";
import { holdLine } from "./holdPreview.ts";
import { naming } from "./holdWords.ts";
import { Dialog, StepItems } from "./parts.tsx";
import { brokersAway, chargers, now, vehicles } from "./store.ts";
import { t } from "./texts.ts";

/** Name of what a scope means, for people. */
export function scopeName(scope: Scope): string {
  if ("vehicle" in scope) return vehicles.of(scope.vehicle)?.name ?? scope.vehicle;
  if ("charger" in scope) return scope.charger;
  return t.hold.everyone(chargers.ids.value.length);
}

/** The command of each charger before the override. Null: none. */
export type CommandsBefore = ReadonlyMap<string, string | null>;

/** Shows whether the override took effect: sent, accepted, measured. */
export function Running({
  hold,
  since,
  before,
  onClose,
}: {
  readonly hold: OpenedHold;
  readonly since: number;
  readonly before: CommandsBefore;
  readonly onClose: () => void;
}) {
  const words = t.hold;
  return (
    <Dialog title={`${words.done}: ${scopeName(hold.scope)}`} onClose={onClose}>
      <p>{holdLine(hold, scopeName(hold.scope), naming)}</p>
      {hold.others.map(({ id, sentence }) => (
        <p key={id} class="hint">
          {sentence}
        </p>
      ))}
      <Effects affected={hold.effect} since={since} before={before} />
      <div class="buttons">
        <button type="button" class="strong" onClick={onClose}>
          {words.close}
        </button>
      </div>
    </Dialog>
  );
}

/** A charger that an action concerns. `level`: undefined means as allowed now. */
interface Affected {
  readonly charger: string;
  readonly level: Level | null | undefined;
  readonly waits?: string | null;
}

/** Result of an action at each of its chargers. */
export const Effects = ({
  affected,
  since,
  before,
}: {
  readonly affected: readonly Affected[];
  readonly since: number;
  readonly before: CommandsBefore;
}) => (
  <ul class="effects">
    {affected.map(({ charger, level, waits }) => (
      <Effect
        key={charger}
        charger={charger}
        level={level}
        waits={waits ?? null}
        since={since}
        before={before.get(charger) ?? null}
      />
    ))}
  </ul>
);

/** Ms within which an override that changes the level has its own command. */
const UNCHANGED_AFTER = 5000;

/** Progress of an override at a charger, by its own readings. */
function Effect({
  charger: id,
  level,
  waits,
  since,
  before,
}: {
  readonly charger: string;
  readonly level: Level | null | undefined;
  readonly waits: string | null;
  readonly since: number;
  readonly before: string | null;
}) {
  const words = t.hold;
  const charger = chargers.of(id);
  const [measuredAt, setMeasuredAt] = useState<number | null>(null);
  // The verdict of the command before does not count. Without a new command the level was in force already.
  const isOwn = charger?.command !== before || now.value > since + UNCHANGED_AFTER;
  const isAway = charger !== undefined && isUnheard(charger, brokersAway.value);
  const verdict = isOwn ? (charger?.verdict ?? "none") : "planned";
  const measured = charger?.measured ?? null;
  const isMeasured = verdict === "followed" && measured !== null && Date.parse(measured.at) > since;
  useEffect(() => {
    if (isMeasured && measuredAt === null) setMeasuredAt(now.peek());
  }, [isMeasured, measuredAt]);
  const levelNow = level === undefined ? setpointText(charger?.allowed ?? null) : levelText(level);
  const amperes = loadedPhase(measured?.currentsA);
  const shown =
    amperes !== null ? amps(amperes) : measured?.powerW != null ? kilowatts(measured.powerW) : levelNow;
  const steps = [
    [words.steps.sent, verdict !== "planned" && verdict !== "none"],
    [words.steps.accepted, ["accepted", "followed", "notFollowed"].includes(verdict) || isMeasured],
    [words.steps.measured, measuredAt !== null],
  ] as const;
  return (
    <li class="effect">
      <strong>
        {id}
        {charger?.vehicle == null ? "" : ` · ${vehicles.of(charger.vehicle)?.name ?? charger.vehicle}`}
      </strong>
      <span>{levelNow}</span>
      <ol class="steps">
        <StepItems steps={steps} />
      </ol>
      <output>
        {verdict === "notFollowed" || verdict === "refused"
          ? words.notFollowed
          : measuredAt === null
            ? (waits ?? (isAway ? words.unreachedNow : words.waiting))
            : words.measuredAs(shown, span(measuredAt - since))}
      </output>
    </li>
  );
}
