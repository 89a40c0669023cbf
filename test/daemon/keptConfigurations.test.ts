import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

import {
  changing,
  chooseAtStart,
  fallBack,
  fingerprintOf,
  type KeptConfigurations,
  keptText,
  MOST_KEPT,
  NOTHING_KEPT,
  readKept,
  running,
  storeKept,
  tried,
} from "../../src/daemon/keptConfigurations.ts";
import { instant } from "../../src/domain/units.ts";

const NOW = instant(Date.parse("2026-11-23T05:30:00Z"));
const [OLD, NEW, OTHER] = ["site: old", "site: new", "site: other"];
const print = fingerprintOf;

/** `text` runs since a start with the file. */
const ran = (text: string, before: KeptConfigurations = NOTHING_KEPT): KeptConfigurations =>
  running(before, text, NOW, null);

const asked = { at: NOW, by: "kari", reason: "second panel" };

/** The file NEW is to replace OLD, or what `from` says. */
const applying = (known: KeptConfigurations, from = OLD): KeptConfigurations =>
  changing(known, { ...asked, kind: "apply", text: NEW, from: print(from), file: print(NEW) });

/** Back from NEW, which is the file, to OLD. */
const goingBack = (known: KeptConfigurations): KeptConfigurations =>
  changing(known, { ...asked, kind: "rollback", text: OLD, from: print(NEW), file: print(NEW) });

/** OLD in force beside the file NEW. */
const wentBack = (): KeptConfigurations => running(tried(goingBack(ran(NEW, ran(OLD)))), OLD, NOW, 400);

const startsWith = (known: KeptConfigurations, file: string): string =>
  chooseAtStart(known, print(file)).text ?? "the file";

test("a start takes the file while nothing else is known, and writes nothing where it has not changed", () => {
  expect(startsWith(NOTHING_KEPT, OLD)).toBe("the file");
  const first = ran(OLD);
  expect(first.ran).toMatchObject([{ fingerprint: print(OLD), by: null }]);
  expect(ran(OLD, first)).toBe(first);
  expect(startsWith(first, NEW)).toBe("the file");
});

test("the last ten configurations that ran are kept, each once, the newest first", () => {
  const texts = Array.from({ length: MOST_KEPT + 2 }, (_, index) => `site: ${index}`);
  let known = NOTHING_KEPT;
  for (const text of [...texts, "site: 5"]) known = ran(text, known);
  expect(known.ran).toHaveLength(MOST_KEPT);
  expect(known.ran.slice(0, 2).map((each) => keptText(known, each.fingerprint))).toEqual([
    "site: 5",
    `site: ${MOST_KEPT + 1}`,
  ]);
  expect(keptText(known, print("site: 0"))).toBeNull();
});

test("an applied file that runs is on record with its person, and nothing holds any more", () => {
  const known = running(tried(applying(wentBack())), NEW, NOW, 412);
  expect(known).toMatchObject({
    change: null,
    inForce: null,
    last: { kind: "apply", result: "running", from: print(OLD), tookMs: 412, failure: null },
  });
  expect(known.ran[0]).toMatchObject({ fingerprint: print(NEW), by: "kari", reason: "second panel" });
  expect(startsWith(known, NEW)).toBe("the file");
});

test("a rollback is in force over restarts until the file changes", () => {
  const known = wentBack();
  expect(known).toMatchObject({
    inForce: { fingerprint: print(OLD), file: print(NEW), because: "rollback", by: "kari" },
    last: { result: "running" },
  });
  expect(startsWith(known, NEW)).toBe(OLD);
  expect(ran(OLD, known)).toBe(known);
  expect(startsWith(known, OTHER)).toBe("the file");
  const after = ran(OTHER, known);
  expect(after).toMatchObject({ inForce: null, last: null });
  expect(startsWith(after, NEW)).toBe("the file");
  // The file was made the same as what runs: nothing has to hold.
  const same = changing(ran(NEW), {
    ...asked,
    kind: "rollback",
    text: OLD,
    from: print(NEW),
    file: print(OLD),
  });
  expect(running(same, OLD, NOW, 1).inForce).toBeNull();
});

test("a file that did not start is not tried by the next start, until it changes", () => {
  const known = fallBack(tried(applying(ran(OLD))), "the port is taken");
  expect(known).toMatchObject({
    change: null,
    inForce: { fingerprint: print(OLD), file: print(NEW), because: "fallback" },
    last: { result: "fellBack", failure: "the port is taken", fingerprint: print(NEW), tookMs: null },
  });
  expect(startsWith(known, NEW)).toBe(OLD);
  expect(startsWith(known, OTHER)).toBe("the file");
  expect(fallBack(known, "again")).toBe(known);
});

test("a fallback restores what was in force before: an earlier rollback, or the file itself", () => {
  const again = fallBack(tried(applying(wentBack())), "the port is taken");
  expect(again.inForce).toMatchObject({ fingerprint: print(OLD), because: "rollback" });
  const back = fallBack(tried(goingBack(ran(NEW, ran(OLD)))), "a profile is gone");
  expect(back.inForce).toBeNull();
  expect(startsWith(back, NEW)).toBe("the file");
});

test("a change that a crash interrupted is tried again, and given up after two processes", () => {
  const known = applying(ran(OLD));
  const first = chooseAtStart(known, print(NEW));
  expect([first.text, first.kept.change?.tries]).toEqual([NEW, 1]);
  const second = chooseAtStart(first.kept, print(NEW));
  expect([second.text, second.kept.change?.tries]).toEqual([NEW, 2]);
  const third = chooseAtStart(second.kept, print(NEW));
  expect(third).toMatchObject({
    text: OLD,
    kept: {
      change: null,
      last: { result: "fellBack", failure: "the process ended 2 times while it started" },
    },
  });
  expect(startsWith(third.kept, NEW)).toBe(OLD);
  expect(tried(third.kept)).toBe(third.kept);
});

test("a change that was interrupted is dropped where the file is another one by now", () => {
  const choice = chooseAtStart(applying(ran(OLD)), print(OTHER));
  expect(choice).toMatchObject({ text: null, kept: { change: null, inForce: null } });
  // Something else than the changed configuration runs.
  expect(running(applying(ran(OLD)), OTHER, NOW, 1)).toMatchObject({ change: null, last: null });
});

test("a configuration in force whose text is lost gives way to the file", () => {
  expect(startsWith({ ...wentBack(), ran: [] }, NEW)).toBe("the file");
});

test("the file of the state folder is for its owner alone; a damaged one costs the history, never the start", () => {
  const state = mkdtempSync(join(tmpdir(), "setpointd-kept-"));
  onTestFinished(() => rmSync(state, { recursive: true, force: true }));
  const path = join(state, "configurations.json");
  expect(readKept(state)).toBe(NOTHING_KEPT);
  expect(storeKept(state, wentBack())).toBeNull();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readKept(state)).toEqual(wentBack());
  writeFileSync(path, "{}");
  expect(readKept(state)).toBe(`${path} is not as setpointd writes it`);
  writeFileSync(path, "{");
  expect(readKept(state)).toContain(`${path}: `);
  expect(storeKept(join(state, "gone"), NOTHING_KEPT)).toContain("ENOENT");
});
