import { useState } from "preact/hooks";

import { download, post, problemText } from "./api.ts";
import type { HoldPreview, OpenedHold, RebootPreview, Resent } from "./apiAnswers.ts";
import type { SiteEvent } from "./derive.ts";
import { ActionDialog } from "./actionDialog.tsx";
import { eventsNow } from "./derive.ts";
import { useAnswer, useLoaded, useRequestKey } from "./effects.ts";
import { nearTime, setpointText } from "./format.ts";
import { Effects } from "./holdEffect.tsx";
import { departureLines, previewLines } from "./holdPreview.ts";
import { namesAt, naming, PREVIEW } from "./holdWords.ts";
import { Act, StepItems } from "./parts.tsx";
import { chargers, events, loadDepartures, loadHolds, now, zone } from "./store.ts";
import { t } from "./texts.ts";

const words = t.event.act;
const resendWords = t.resend;
const rebootWords = t.reboot;

/** The hold that an opt-out opens. */
const EXEMPTION = { scope: { site: true }, kind: "exempt", until: { events: true } };

/** Leaves an event for the rest of its time: an exemption of the whole site until the present events end. */
export function OptOut({ event }: { readonly event: SiteEvent }) {
  const [isOpen, setOpen] = useState(false);
  const keyOf = useRequestKey();
  const under = chargers.all.value.filter(({ asked }) => asked !== null);
  const active = eventsNow(events.all.value, now.value).active.filter(({ id }) =>
    under.some(({ asked }) => asked?.event === id),
  );
  const last = Math.max(...active.map(({ end }) => Date.parse(end ?? "")).filter((at) => !Number.isNaN(at)));
  const preview = useAnswer<HoldPreview>("holds/preview", isOpen ? { ...EXEMPTION, reason: PREVIEW } : null);
  const act = async (reason: string) => {
    const since = now.value;
    const before = new Map(under.map(({ charger, command }) => [charger, command]));
    const body = { ...EXEMPTION, reason };
    const hold = await post<OpenedHold>("holds", body, { "idempotency-key": keyOf(body) });
    void loadHolds().catch(() => undefined);
    void loadDepartures().catch(() => undefined);
    const names = new Set(under.map(({ charger }) => charger));
    return (
      <>
        <p>{hold.sentence}</p>
        <Effects
          affected={hold.effect.filter(({ charger }) => names.has(charger))}
          since={since}
          before={before}
        />
      </>
    );
  };
  const name = event.name ?? event.id;
  return (
    <>
      <Act role="operator" label={words.optOut} onPress={() => setOpen(true)} />
      {isOpen && (
        <ActionDialog
          title={words.optOutOf(name)}
          will={[
            t.hold.siteGets(under.length, namesAt(under)),
            ...departureLines(preview, naming),
            ...active
              .filter(({ id }) => id !== event.id)
              .map((other) => words.alsoSetsAside(other.name ?? other.id)),
            Number.isFinite(last) ? words.until(nearTime(zone.value, last, now.value)) : words.untilEvents,
            ...previewLines(preview, naming),
            words.reported,
          ]}
          presets={words.presets}
          submit={words.optOutSubmit}
          act={act}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

const FORMATS = ["json", "csv"] as const;

/** The history of the event as a sealed file. */
export function Proof({ id }: { readonly id: string }) {
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly text: string }>({
    isBusy: false,
    text: "",
  });
  const save = async (format: (typeof FORMATS)[number]): Promise<void> => {
    setState({ isBusy: true, text: words.proofRuns });
    try {
      const name = `proof-${id.replaceAll(/[^\w.-]+/g, "_")}.${format}`;
      const lines = await download(`events/${encodeURIComponent(id)}/proof?format=${format}`, name);
      setState({ isBusy: false, text: words.proofSaved(name, lines) });
    } catch (error) {
      setState({ isBusy: false, text: problemText(error) });
    }
  };
  return (
    <>
      {FORMATS.map((format) => (
        <button
          key={format}
          type="button"
          class="plain"
          disabled={state.isBusy}
          onClick={() => void save(format)}
        >
          {words.proof(format.toUpperCase())}
        </button>
      ))}
      <output class="hint">{state.text}</output>
    </>
  );
}

/** Sends the last command of a charger again. */
export function Resend({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false);
  const charger = chargers.of(id);
  if (charger === undefined || charger.command === null) return null;
  const { allowed, command } = charger;
  const act = async (reason: string) => {
    const since = now.value;
    const { sentence } = await post<Resent>(`chargers/${encodeURIComponent(id)}/resend`, { reason });
    return (
      <>
        <p>{sentence}</p>
        <Effects
          affected={[{ charger: id, level: undefined, waits: null }]}
          since={since}
          before={new Map([[id, command]])}
        />
      </>
    );
  };
  return (
    <>
      <Act role="operator" label={resendWords.label} onPress={() => setOpen(true)} />
      {isOpen && (
        <ActionDialog
          title={resendWords.title(id)}
          will={[resendWords.will(id, setpointText(allowed)), resendWords.same, t.hold.others]}
          presets={resendWords.presets}
          submit={resendWords.submit}
          act={act}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

/** Ms between two requests for what a reboot would interrupt. */
const REBOOT_EVERY = 5_000;

/** Reboots a charger. `name`: for a screen reader, where several stand on one screen. */
export function Reboot({ id, name }: { readonly id: string; readonly name?: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Act
        role="operator"
        label={rebootWords.label}
        {...(name === undefined ? {} : { name })}
        onPress={() => setOpen(true)}
      />
      {isOpen && <RebootDialog id={id} onClose={() => setOpen(false)} />}
    </>
  );
}

function RebootDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const path = `chargers/${encodeURIComponent(id)}/reboot`;
  const { value, problem } = useLoaded<RebootPreview>(path, REBOOT_EVERY);
  const act = async (reason: string) => {
    const { last } = await post<RebootPreview>(path, { reason });
    return <RebootResult id={id} started={last} />;
  };
  const hindrance = value?.hindrance ?? null;
  return (
    <ActionDialog
      title={rebootWords.title(id)}
      will={value === null ? [problem ?? t.loading] : [...value.will, rebootWords.record]}
      presets={rebootWords.presets}
      submit={rebootWords.submit}
      isReady={value !== null && hindrance === null}
      act={act}
      onClose={onClose}
    >
      {hindrance !== null && <p class="problem">{rebootWords.barred(hindrance)}</p>}
    </ActionDialog>
  );
}

/** Progress of a reboot: the charger came back, and has its level again. `started`: as the gateway answered. */
function RebootResult({ id, started }: { readonly id: string; readonly started: RebootPreview["last"] }) {
  const charger = chargers.of(id);
  const shown = charger?.reboot?.id === started?.id ? (charger?.reboot ?? started) : started;
  const progress = shown?.progress ?? "asked";
  const isBack = progress === "back";
  const hasLevel = charger?.allowed != null && charger.allowed.kind !== "release";
  const obeys = charger?.verdict === "accepted" || charger?.verdict === "followed";
  const steps: (readonly [string, boolean])[] = [
    [rebootWords.steps.sent, progress !== "asked" && progress !== "failed"],
    [rebootWords.steps.away, isBack || progress === "away" || progress === "missing"],
    [rebootWords.steps.back, isBack],
    ...(hasLevel ? [[rebootWords.steps.level, isBack && obeys] as const] : []),
  ];
  return (
    <div class="effect">
      <ol class="steps">
        <StepItems steps={steps} />
      </ol>
      <output>{shown?.sentence ?? ""}</output>
    </div>
  );
}
