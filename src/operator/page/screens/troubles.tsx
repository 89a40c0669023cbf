import { useState } from "preact/hooks";

import { post, Refused } from "../api.ts";
import { type Trouble, troubles } from "../derive.ts";
import { span } from "../format.ts";
import { Act, Dialog, Glyph, ReasonField, Section, State } from "../parts.tsx";
import { vehiclePath } from "../router.ts";
import { alarms, chargers, now, status, vehicles } from "../store.ts";
import { t } from "../texts.ts";

const words = t.now;

export function Troubles() {
  const found = troubles(alarms.all.value, status.value, chargers.all.value, vehicles.all.value);
  const [asked, setAsked] = useState<Trouble | null>(null);
  return (
    <Section
      name="trouble"
      title={words.trouble}
      aside={<span class="count">{found.length === 0 ? "" : found.length}</span>}
    >
      {found.length === 0 ? (
        <p class="quiet">
          <State shown={{ word: words.noTrouble, shape: "dot", tone: "good" }} />
        </p>
      ) : (
        <ul class="troubles">
          {found.map((trouble) => (
            <TroubleRow key={trouble.key} trouble={trouble} onAcknowledge={() => setAsked(trouble)} />
          ))}
        </ul>
      )}
      {asked?.alarm != null && <Acknowledge trouble={asked} onClose={() => setAsked(null)} />}
    </Section>
  );
}

const SHAPE = { bad: "cross", warn: "triangle", info: "ring" } as const;

function TroubleRow({
  trouble,
  onAcknowledge,
}: {
  readonly trouble: Trouble;
  readonly onAcknowledge: () => void;
}) {
  const { tone, message, action, since, alarm, vehicle } = trouble;
  const acknowledged = alarm?.acknowledged ?? null;
  return (
    <li class={`trouble-row ${acknowledged === null ? tone : "mute"}`}>
      <Glyph shape={SHAPE[tone]} />
      <div>
        <p class="trouble-what">
          {vehicle === null ? message : <a href={vehiclePath(vehicle)}>{message}</a>}
        </p>
        <p class="trouble-do">{action}</p>
        <p class="trouble-age">
          {since !== null && words.since(span(Math.max(0, now.value - Date.parse(since))))}
          {acknowledged !== null && ` · ${words.acknowledged(acknowledged.by)}`}
        </p>
      </div>
      {alarm?.state === "open" && <Act role="operator" label={words.acknowledge} onPress={onAcknowledge} />}
    </li>
  );
}

function Acknowledge({ trouble, onClose }: { readonly trouble: Trouble; readonly onClose: () => void }) {
  const [note, setNote] = useState(t.alarm.presets[0] ?? "");
  const [problem, setProblem] = useState("");
  const submit = async (): Promise<void> => {
    try {
      alarms.put(await post(`alarms/${encodeURIComponent(trouble.key)}/acknowledge`, { note: note.trim() }));
      onClose();
    } catch (error) {
      setProblem(error instanceof Refused ? `${error.message}. ${error.detail}` : String(error));
    }
  };
  return (
    <Dialog title={t.alarm.title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p>{trouble.message}</p>
        <p class="hint">{t.alarm.will}</p>
        <ReasonField label={t.alarm.note} presets={t.alarm.presets} value={note} onChange={setNote} />
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            {t.hold.cancel}
          </button>
          <button class="strong">{t.alarm.submit}</button>
        </div>
      </form>
    </Dialog>
  );
}
