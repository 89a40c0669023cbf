import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

import {
  ActionDialog,
  ActionForm,
  Buttons,
  Choices,
  NumberField,
  ReasonField,
  TimeField,
} from "./actionDialog.tsx";
import { get, post, changeProblem, remove } from "./api.ts";
import type { Explanation, Hold, HoldPreview, OpenedHold, Scope } from "./apiAnswers.ts";
import { Dialog } from "./parts.tsx";
import { type CommandsBefore, Running, scopeName } from "./holdEffect.tsx";
import { useAnswer, useRequestKey } from "./effects.ts";
import { departureLines, endConsequences, previewLines } from "./holdPreview.ts";
import {
  clockIn,
  consequences,
  endLine,
  type End,
  naming,
  nextAt,
  PREVIEW,
  underScope,
} from "./holdWords.ts";
import { address } from "./router.ts";
import { loadDepartures, loadHolds, now } from "./store.ts";
import { t } from "./texts.ts";

type Open =
  | { readonly kind: "new"; readonly scope: Scope }
  | {
      readonly kind: "running";
      readonly hold: OpenedHold;
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
  // The back button closes a dialog, as it does where the screen below has its own.
  useSignalEffect(() => {
    void address.value;
    open.value = null;
  });
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

/** The first time offered, in ms from now. */
const DEFAULT_LENGTH = 3_600_000;
/** Largest current in A, and energy in kWh. */
const MOST = 1000;

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
  const keyOf = useRequestKey();

  useEffect(() => {
    if (!("vehicle" in scope)) return;
    void get<Explanation>(`explain?vehicle=${encodeURIComponent(scope.vehicle)}`).then(
      setWhy,
      () => undefined,
    );
  }, []);

  const until = (): object => {
    switch (end) {
      case "events":
        return { events: true };
      case "unplugged":
        return { unplugged: true };
      case "energy":
        return { energyWh: Number(energy) * 1000 };
      case "at":
        return { at: new Date(nextAt(time)).toISOString() };
    }
  };

  /** Null: a number or a time is still to be typed. */
  const request = (): object | null => {
    const isTyped =
      (kind === "exempt" || Number(current) > 0) &&
      (end !== "energy" || Number(energy) > 0) &&
      (end !== "at" || time !== "");
    const level = kind === "level" ? { level: { currentA: Number(current) } } : {};
    return isTyped ? { scope, kind, ...level, until: until() } : null;
  };
  const asked = request();
  const preview = useAnswer<HoldPreview>(
    "holds/preview",
    asked === null ? null : { ...asked, reason: PREVIEW },
  );

  const { first, more } = consequences(scope, who, kind, current, why);

  const submit = async (): Promise<void> => {
    setBusy(true);
    setTrouble("");
    try {
      const since = now.value;
      const before = new Map(under.map(({ charger, command }) => [charger, command]));
      const body = { ...asked, reason: reason.trim() };
      const hold = await post<OpenedHold>("holds", body, { "idempotency-key": keyOf(body) });
      void loadHolds().catch(() => undefined);
      void loadDepartures().catch(() => undefined);
      open.value = { kind: "running", hold, since, before };
    } catch (error) {
      setTrouble(changeProblem(error));
      setBusy(false);
    }
  };

  const ends = [
    { value: "events", label: words.untilEvents, isDisabled: !hasEvent },
    { value: "at", label: words.untilTime },
    ...("site" in scope
      ? []
      : ([
          { value: "unplugged", label: words.untilUnplugged },
          { value: "energy", label: words.untilEnergy },
        ] as const)),
  ] as const;

  return (
    <Dialog title={words.title(who)} onClose={onClose}>
      <ActionForm
        will={[
          first,
          ...departureLines(preview, naming),
          ...more,
          ...previewLines(preview, naming),
          endLine(end, time, energy, preview.value?.until ?? null),
        ]}
        trouble={trouble}
        onSubmit={submit}
        buttons={<Buttons submit={words.submit} reason={reason} isReady={!isBusy} onClose={onClose} />}
      >
        <fieldset>
          <legend>{words.kind}</legend>
          <div class="choices">
            <Choices
              name="kind"
              options={[
                { value: "exempt", label: words.exempt },
                { value: "level", label: words.level },
              ]}
              value={kind}
              onChange={setKind}
            />
            {kind === "level" && (
              <>
                <NumberField label={words.amperes} most={MOST} value={current} onChange={setCurrent} />
                <span>{words.amperes}</span>
              </>
            )}
          </div>
        </fieldset>
        <fieldset>
          <legend>{words.until}</legend>
          <div class="choices">
            <Choices name="until" options={ends} value={end} onChange={setEnd} />
            {end === "at" && <TimeField label={words.time} value={time} onChange={setTime} />}
            {end === "energy" && (
              <>
                <NumberField label={words.energy} most={MOST} value={energy} onChange={setEnergy} />
                <span>{words.energy}</span>
              </>
            )}
          </div>
          {!hasEvent && <p class="hint">{words.noEvents}</p>}
        </fieldset>
        <ReasonField label={words.reason} presets={words.presets} value={reason} onChange={setReason} />
      </ActionForm>
    </Dialog>
  );
}

function EndHold({ hold, onClose }: { readonly hold: Hold; readonly onClose: () => void }) {
  const words = t.hold;
  return (
    <ActionDialog
      title={words.endTitle(scopeName(hold.scope))}
      will={endConsequences(hold, naming)}
      presets={words.endPresets}
      first={words.endPresets[0] ?? ""}
      submit={words.endSubmit}
      act={async (reason) => {
        await remove(`holds/${encodeURIComponent(hold.id)}`, { reason });
        void loadHolds().catch(() => undefined);
        return null;
      }}
      onClose={onClose}
    />
  );
}
