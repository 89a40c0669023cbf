import type { SiteEvent } from "../derive.ts";
import { askText, nearTime } from "../format.ts";
import { HeadRow, Section } from "../parts.tsx";
import { eventPath, vehiclePath } from "../router.ts";
import { now, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.timeline;

/** An event with its window. The last vehicle ends later by its own start offset. */
export interface Bar {
  readonly event: SiteEvent;
  readonly from: number;
  readonly until: number;
}

export const nameOf = (id: string): string => vehicles.of(id)?.name ?? id;

const time = (at: number): string => nearTime(zone.value, at, now.value);

/** The same as text: for a screen reader, and for exact times. */
export function TimelineTable({
  bars,
  leaving,
}: {
  readonly bars: readonly Bar[];
  readonly leaving: readonly { readonly departure: { readonly vehicle: string }; readonly at: number }[];
}) {
  if (bars.length + leaving.length === 0) return null;
  const { columns } = words;
  return (
    <Section name="timeline-table" title={words.table}>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="h-timeline-table">
        <table class="rows rows-plain">
          <HeadRow columns={columns} />
          <tbody>
            {bars.map(({ event, from, until }) => (
              <tr key={event.id}>
                <th scope="row">
                  <a href={eventPath(event.id)}>{event.name ?? event.id}</a>
                </th>
                <td>{time(from)}</td>
                <td>{time(until)}</td>
                <td>
                  {askText(event.ask)}, {event.vehicles?.length ?? 0}
                </td>
              </tr>
            ))}
            {leaving.map(({ departure, at }) => (
              <tr key={departure.vehicle}>
                <th scope="row">
                  <a href={vehiclePath(departure.vehicle)}>{nameOf(departure.vehicle)}</a>
                </th>
                <td>{time(at)}</td>
                <td>–</td>
                <td>{words.departures}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
