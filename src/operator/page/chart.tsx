import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import type { Point } from "./apiAnswers.ts";
import { clockTime } from "./format.ts";
import type { Step } from "./commands.ts";
import { zone } from "./store.ts";
import { t } from "./texts.ts";
import { theme } from "./parts.tsx";

interface ChartData {
  readonly from: number;
  readonly until: number;
  readonly asked: readonly Step[];
  readonly allowed: readonly Step[];
  readonly measured: readonly Point[];
  readonly soc: readonly Point[];
}

/** Without a reading for this time, in ms, nothing is known: the stretch is hatched and not joined. */
const GAP = 5 * 60_000;
const HEIGHT = 240;
/** Minutes between two labels of the time axis. */
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720];

/** Stretches without readings, from the first to the last moment. */
function gapsIn(
  points: readonly Point[],
  from: number,
  until: number,
): readonly (readonly [number, number])[] {
  const times = [from, ...points.map(([at]) => at), until];
  return times.slice(1).flatMap((at, index) => {
    const before = times[index] ?? from;
    return at - before > GAP ? [[before, at] as const] : [];
  });
}

/** Series on a common time axis. Steps hold their value; measured values are not joined over a gap. */
function aligned({ from, until, asked, allowed, measured, soc }: ChartData): uPlot.AlignedData {
  const gaps = gapsIn(measured, from, until);
  const times = [
    from,
    until,
    ...asked.map(([at]) => at),
    ...allowed.map(([at]) => at),
    ...measured.map(([at]) => at),
    ...soc.map(([at]) => at),
    ...gaps.map(([start]) => start + 1),
  ];
  const axis = [...new Set(times)].filter((at) => at >= from && at <= until).toSorted((a, b) => a - b);
  const steps = (list: readonly Step[]): (number | null)[] => {
    let index = -1;
    return axis.map((at) => {
      while (index + 1 < list.length && (list[index + 1]?.[0] ?? Infinity) <= at) index += 1;
      return list[index]?.[1] ?? null;
    });
  };
  const points = (list: readonly Point[], breaks: readonly (readonly [number, number])[]) => {
    const at = new Map(list);
    const ends = new Set(breaks.map(([start]) => start + 1));
    // uPlot joins over undefined, and not over null.
    return axis.map((moment) => at.get(moment) ?? (ends.has(moment) ? null : undefined));
  };
  return [axis.map((at) => at / 1000), steps(asked), steps(allowed), points(measured, gaps), points(soc, [])];
}

/** The present value of a colour, as the canvas needs it: `light-dark()` is resolved by an element. */
function colours(element: HTMLElement) {
  const probe = document.createElement("i");
  element.append(probe);
  const resolved = (name: string): string => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    text: resolved("--soft"),
    line: resolved("--line"),
    asked: resolved("--warn"),
    allowed: resolved("--info"),
    measured: resolved("--good"),
  };
  probe.remove();
  return found;
}

/** Hatches the stretches of which nothing is known. */
function hatch(plot: uPlot, gaps: readonly (readonly [number, number])[], stroke: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  for (const [start, end] of gaps) {
    const left = Math.max(plot.valToPos(start / 1000, "x", true), bbox.left);
    const right = Math.min(plot.valToPos(end / 1000, "x", true), bbox.left + bbox.width);
    if (right <= left) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.clip();
    ctx.beginPath();
    for (let x = left - bbox.height; x < right; x += 10 * devicePixelRatio) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
  }
  ctx.restore();
}

/** Chart of the asked, the allowed and the measured level, in A per phase. */
export function LevelChart(data: ChartData) {
  const host = useRef<HTMLDivElement>(null);
  const scheme = theme.value;
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const draw = (): uPlot => {
      const { text, line, asked, allowed, measured } = colours(element);
      const gaps = gapsIn(data.measured, data.from, data.until);
      const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      const font = `${Math.round(rem * 0.75)}px sans-serif`;
      const axis = {
        stroke: text,
        font,
        grid: { stroke: line, width: 1 },
        ticks: { stroke: line, width: 1 },
      };
      const stepped = uPlot.paths.stepped?.({ align: 1 });
      const steps = stepped === undefined ? {} : { paths: stepped };
      const plain = { points: { show: false } };
      return new uPlot(
        {
          width: element.clientWidth,
          height: HEIGHT,
          legend: { show: false },
          cursor: { show: false },
          scales: {
            x: { time: true, range: [data.from / 1000, data.until / 1000] },
            y: { range: (_plot, _low, high) => [0, Math.max(8, (high ?? 0) * 1.1)] },
            soc: { range: [0, 100] },
          },
          axes: [
            {
              ...axis,
              // Whole minutes: a label has no seconds.
              incrs: MINUTES.map((count) => count * 60),
              space: rem * 5,
              values: (_plot, splits) => splits.map((at) => clockTime(zone.peek(), at * 1000)),
            },
            { ...axis, values: (_plot, splits) => splits.map((value) => `${value} A`), size: rem * 3.5 },
          ],
          series: [
            {},
            { ...plain, ...steps, stroke: asked, width: 2, dash: [6, 4] },
            { ...plain, ...steps, stroke: allowed, width: 2 },
            {
              ...plain,
              stroke: measured,
              width: 2,
              fill: `color-mix(in srgb, ${measured} 14%, transparent)`,
            },
            { ...plain, stroke: text, width: 1, dash: [2, 3], scale: "soc" },
          ],
          hooks: { drawClear: [(plot) => hatch(plot, gaps, line)] },
        },
        aligned(data),
        element,
      );
    };
    let plot = draw();
    const redraw = (): void => {
      plot.destroy();
      plot = draw();
    };
    const sizes = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", redraw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [data.from, data.until, scheme]);
  return (
    <figure class="chart-figure">
      <div ref={host} class="chart-plot" role="img" aria-label={t.chart.label} />
      <figcaption class="legend">
        <span class="legend-asked">{t.chart.asked}</span>
        <span class="legend-allowed">{t.chart.allowed}</span>
        <span class="legend-measured">{t.chart.measured}</span>
        {data.soc.length > 0 && <span class="legend-soc">{t.chart.soc}</span>}
        <span class="legend-gap">{t.chart.gap}</span>
      </figcaption>
    </figure>
  );
}
