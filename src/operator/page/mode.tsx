import { useEffect, useState } from "preact/hooks";

import { get, put } from "./api.ts";
import type { ChangedMode, Mode } from "./apiAnswers.ts";
import { ActionDialog, TimeField } from "./actionDialog.tsx";
import { eventsNow, siteMode } from "./derive.ts";
import { nearTime } from "./format.ts";
import { Effects } from "./holdEffect.tsx";
import { clockIn, naming, nextAt } from "./holdWords.ts";
import { Act, Section, State } from "./parts.tsx";
import { chargers, events, now, status, zone } from "./store.ts";
import { t } from "./texts.ts";

const words = t.siteMode;

/** The end that is offered first, in ms from now. */
const DEFAULT_LENGTH = 3_600_000;

/** The mode of the site, and what an integrator may do about it. */
export function ModePanel() {
  const current = status.value;
  const [isOpen, setOpen] = useState(false);
  if (current === null) return null;
  const { observing } = current;
  const isObserving = current.mode === "observe";
  return (
    <Section
      name="system-mode"
      title={t.strip.mode}
      aside={<State shown={siteMode(current, eventsNow(events.all.value, now.value).active.length)} />}
    >
      <p class="quiet">
        {observing == null
          ? isObserving
            ? words.configured
            : words.drives
          : words.observes(naming.time(observing.until), observing.by, observing.reason)}
      </p>
      {(!isObserving || observing != null) && (
        <div class="acts">
          <Act
            role="integrator"
            label={isObserving ? words.drive : words.observe}
            onPress={() => setOpen(true)}
          />
        </div>
      )}
      {isOpen && <ModeDialog wanted={isObserving ? "drive" : "observe"} onClose={() => setOpen(false)} />}
    </Section>
  );
}

function ModeDialog({
  wanted,
  onClose,
}: {
  readonly wanted: "observe" | "drive";
  readonly onClose: () => void;
}) {
  const [time, setTime] = useState(() => clockIn(now.value + DEFAULT_LENGTH));
  const [mode, setMode] = useState<Mode | null>(null);
  // The dialog keeps its purpose while the mode changes under it.
  const [isObserve] = useState(wanted === "observe");
  useEffect(() => {
    void get<Mode>("mode").then(setMode, () => undefined);
  }, []);
  const all = chargers.all.value;
  const limited = all.filter(({ allowed }) => allowed !== null && allowed.kind !== "release").length;
  const asked = all.filter((charger) => charger.asked !== null).length;
  const until = nearTime(zone.value, nextAt(time), now.value);
  const will = isObserve
    ? [
        words.willObserve(all.length, until),
        mode?.onObserve === "keep" ? words.willKeep(limited) : words.willRelease(limited),
        words.willRecord,
      ]
    : [words.willDrive(all.length), words.willFollow(asked)];
  const act = async (reason: string) => {
    const since = now.value;
    const before = new Map(all.map(({ charger, command }) => [charger, command]));
    const answer = await put<ChangedMode>("mode", {
      mode: isObserve ? "observe" : "drive",
      reason,
      ...(isObserve ? { until: new Date(nextAt(time)).toISOString() } : {}),
    });
    const changed = isObserve
      ? answer.limited
      : all.flatMap(({ charger, asked: event }) => (event === null ? [] : [charger]));
    return (
      <>
        <p>{answer.sentence}</p>
        <Effects
          affected={changed.map((charger) => ({ charger, level: undefined, waits: null }))}
          since={since}
          before={before}
        />
      </>
    );
  };
  return (
    <ActionDialog
      title={isObserve ? words.observeTitle : words.driveTitle}
      will={will}
      presets={isObserve ? words.observePresets : words.drivePresets}
      submit={isObserve ? words.observeSubmit : words.driveSubmit}
      act={act}
      onClose={onClose}
    >
      {isObserve && (
        <fieldset>
          <legend>{t.hold.until}</legend>
          <TimeField label={t.hold.until} value={time} onChange={setTime} />
        </fieldset>
      )}
    </ActionDialog>
  );
}
