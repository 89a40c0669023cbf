import type { Report } from "../apiAnswers.ts";
import { nearTime } from "../format.ts";
import { Section, State } from "../parts.tsx";
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
