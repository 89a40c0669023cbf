import { Fragment } from "preact";
import { useState } from "preact/hooks";

import { ActionDialog } from "../actionDialog.tsx";
import { post } from "../api.ts";
import { BindDialog } from "../binding.tsx";
import { isUnnamed, type Trouble, troubles } from "../derive.ts";
import { foldKinds, sentence, span } from "../format.ts";
import { named } from "../holdPreview.ts";
import { Act, Glyph, Section, State } from "../parts.tsx";
import { linkTo, vehiclePath } from "../router.ts";
import { alarms, chargers, now, status, vehicles } from "../store.ts";
import { t } from "../texts.ts";

const words = t.now;

const found = () => troubles(alarms.all.value, status.value, chargers.all.value, vehicles.all.value);

/** Leads to the list of troubles, which a phone has below all vehicles. Nothing needs a person: null. */
export function TroubleLink() {
  const { length, 0: worst } = found().filter(isPresent);
  if (worst === undefined) return null;
  return (
    <a class="only-phone" href="#h-trouble">
      <State shown={{ word: words.troubleCount(length), shape: SHAPE[worst.tone], tone: worst.tone }} />
    </a>
  );
}

export function Troubles() {
  const all = found();
  const [asked, setAsked] = useState<Trouble | null>(null);
  return (
    <Section
      name="trouble"
      title={words.trouble}
      aside={<span class="count">{all.filter(isPresent).length || ""}</span>}
    >
      {all.length === 0 ? (
        <p class="quiet">
          <State shown={{ word: words.noTrouble, shape: "dot", tone: "good" }} />
        </p>
      ) : (
        <ul class="troubles">
          {foldKinds(all, kindOf).map(({ written, rest }) => (
            <Fragment key={written[0]?.key}>
              {written.map((trouble) => (
                <TroubleRow key={trouble.key} trouble={trouble} onAcknowledge={() => setAsked(trouble)} />
              ))}
              {rest.length > 0 && (
                <li class="trouble-row">
                  <a href={linkTo("/bays")}>
                    {words.moreAlike(rest.length, named(rest.flatMap(({ subject }) => subject ?? [])))}
                  </a>
                </li>
              )}
            </Fragment>
          ))}
        </ul>
      )}
      {asked?.alarm != null && <Acknowledge trouble={asked} onClose={() => setAsked(null)} />}
    </Section>
  );
}

/** False: its cause has ended, and the alarm only waits for its quiet time. */
const isPresent = ({ alarm }: Trouble): boolean => alarm === null || alarm.goneSince === null;

/** Identity of a trouble: what is wrong, how grave it is, and whether a person takes care of it. */
const kindOf = ({ key, tone, alarm }: Trouble): string =>
  `${key.split(/[: ]/, 1)[0]} ${tone} ${alarm?.state}`;

const SHAPE = { bad: "cross", warn: "triangle", info: "ring" } as const;

function TroubleRow({
  trouble,
  onAcknowledge,
}: {
  readonly trouble: Trouble;
  readonly onAcknowledge: () => void;
}) {
  const { tone, message, action, since, alarm, vehicle, subject } = trouble;
  const [isBinding, setBinding] = useState(false);
  const charger = subject === null ? undefined : chargers.of(subject);
  const acknowledged = alarm?.acknowledged ?? null;
  return (
    <li class={`trouble-row ${acknowledged === null ? tone : "mute"}`}>
      <Glyph shape={SHAPE[tone]} />
      <div>
        <p class="trouble-what">
          {vehicle === null ? sentence(message) : <a href={vehiclePath(vehicle)}>{sentence(message)}</a>}
        </p>
        <p class="trouble-do">{action}</p>
        <p class="trouble-age">
          {since !== null && words.since(span(Math.max(0, now.value - Date.parse(since))))}
          {acknowledged !== null && ` · ${words.acknowledged(acknowledged.by)}`}
        </p>
      </div>
      {charger !== undefined && charger.occupant === "unknown" && isUnnamed(charger) && (
        <Act role="operator" label={t.binding.nameIt} onPress={() => setBinding(true)} />
      )}
      {isBinding && <BindDialog vehicle={null} charger={subject} onClose={() => setBinding(false)} />}
      {alarm?.state === "open" && <Act role="operator" label={words.acknowledge} onPress={onAcknowledge} />}
    </li>
  );
}

const Acknowledge = ({ trouble, onClose }: { readonly trouble: Trouble; readonly onClose: () => void }) => (
  <ActionDialog
    title={t.alarm.title}
    will={[t.alarm.will]}
    presets={t.alarm.presets}
    label={t.alarm.note}
    first={t.alarm.presets[0] ?? ""}
    submit={t.alarm.submit}
    act={async (note) => {
      alarms.put(await post(`alarms/${encodeURIComponent(trouble.key)}/acknowledge`, { note }));
      return null;
    }}
    onClose={onClose}
  >
    <p>{sentence(trouble.message)}</p>
  </ActionDialog>
);
