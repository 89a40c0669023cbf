import type { Report } from "../apiAnswers.ts";
import { eventState, type SiteEvent } from "../derive.ts";
import { nearTime } from "../format.ts";
import { Glyph, Section, State } from "../parts.tsx";
import { now, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.event;
const timeOf = (iso: string): string => nearTime(zone.value, Date.parse(iso), now.value);

const REPORT = {
  planned: { shape: "ring", tone: "info" },
  waiting: { shape: "pause", tone: "warn" },
  sent: { shape: "dot", tone: "good" },
  flagged: { shape: "triangle", tone: "bad" },
} as const;

/** Progress of an event: what is done, and what is next. */
export function Course({
  event,
  reports,
}: {
  readonly event: SiteEvent | undefined;
  readonly reports: readonly Report[];
}) {
  if (event?.start === undefined || event.end === undefined) return null;
  const { receivedAt, start, end, randomizeStartMs = 0 } = event;
  const state = eventState(event, now.value);
  const hasEnded = state === "ended";
  const hasStarted = hasEnded || state === "active";
  const allStarted = Date.parse(start) + randomizeStartMs;
  const isStarting = state === "active" && now.value < allStarted;
  // The last vehicle ends later by its own start offset.
  const last = nearTime(zone.value, Date.parse(end) + randomizeStartMs, now.value);
  const sent = reports.filter((report) => report.state === "sent").length;
  const text = words.steps;
  const steps = [
    receivedAt === undefined ? null : ([text.received(timeOf(receivedAt)), true] as const),
    [hasStarted ? text.started(timeOf(start)) : text.starts(timeOf(start)), hasStarted] as const,
    isStarting ? ([text.starting(nearTime(zone.value, allStarted, now.value)), false] as const) : null,
    [hasEnded ? text.ended(last) : text.ends(last), hasEnded] as const,
    reports.length === 0 ? null : ([text.reported(sent, reports.length), sent === reports.length] as const),
  ].filter((step) => step !== null);
  return (
    <ol class="steps course" aria-label={words.course}>
      {steps.map(([label, isDone]) => (
        <li key={label} class={isDone ? "good" : "mute"}>
          <Glyph shape={isDone ? "dot" : "ring"} />
          {label}
        </li>
      ))}
    </ol>
  );
}

/** Reports that the partner asked for on an event. */
export const Reports = ({ all }: { readonly all: readonly Report[] }) => (
  <Section name="reports" title={words.reports} aside={<span class="count">{all.length}</span>}>
    {all.length === 0 ? (
      <p class="quiet">{words.noReports}</p>
    ) : (
      <ul class="troubles">
        {all.map((report) => (
          <li key={report.name} class="trouble-row">
            <State shown={{ word: words.report[report.state], ...REPORT[report.state] }} />
            <div>
              <p class="trouble-what">
                {report.name} {report.payloadType ?? ""}
              </p>
              <p class="trouble-do">
                {[
                  report.summary,
                  report.due === null ? null : words.due(timeOf(report.due)),
                  report.sentAt === null ? null : words.sent(timeOf(report.sentAt), report.status),
                  report.attempts > 1 ? words.attempts(report.attempts) : null,
                  report.nextTry === null ? null : words.nextTry(timeOf(report.nextTry)),
                  report.reason,
                ]
                  .filter((text) => text !== null)
                  .join(" · ")}
              </p>
            </div>
          </li>
        ))}
      </ul>
    )}
  </Section>
);
