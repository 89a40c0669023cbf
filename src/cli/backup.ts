import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

import type { Instant } from "../core/units.ts";
import { isFault } from "../store/boot.ts";
import { copyFiles, placeCopy, settleCopy } from "../store/copy.ts";
import { fileFault, type Fault, refused } from "../store/fault.ts";
import { replaceFile } from "../store/files.ts";
import { MAX_PAGES } from "../store/open.ts";
import { configuration } from "./configuration.ts";
import { askDaemon } from "./daemon.ts";
import { complain, type ExitCode, say } from "./outcome.ts";
import { withState } from "./storedState.ts";

/** `backup`: one file with everything stored, and the site key beside it; a running daemon goes on meanwhile. */
export async function backup(named: string | undefined, file: string, now: () => Instant): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const path = resolve(file);
  let draft: string | null = null;
  try {
    draft = mkdtempSync(`${path}.`);
    const siteKey = readFileSync(join(config.state, "site.key"));
    const fault = await copyStored(config.state, draft);
    const copied = fault ?? settleCopy({ directory: draft, siteKey, maxPages: MAX_PAGES }, now());
    if (isFault(copied)) {
      complain(`no backup was made: ${copied.reason}`);
      return 1;
    }
    replaceFile(`${path}.key`, siteKey);
    placeCopy(draft, path);
    say(`${path}: ${copied.rows} rows of the record, ${copied.events} events`);
    say(`${path}.key: the site key, a secret; both are needed to restore`);
    return 0;
  } catch (error) {
    complain(`no backup was made: ${fileFault(error).reason}`);
    return 1;
  } finally {
    if (draft !== null) rmSync(draft, { recursive: true, force: true });
  }
}

/** Null: the files were copied, and nothing but commits happened to them meanwhile. */
async function copyStored(state: string, draft: string): Promise<Fault | null> {
  const begun = await askDaemon(state, "POST", "/backup/begin");
  if (begun.kind === "absent") {
    const done = withState(state, () => copyFiles(state, draft));
    return typeof done === "string" ? refused(done) : null;
  }
  if (begun.kind === "failed") return refused(begun.reason);
  if (!isOk(begun.body))
    return refused("another backup is being made, or was cut short within the last 10 min");
  const copied = attempt(() => copyFiles(state, draft));
  const ended = await askDaemon(state, "POST", "/backup/end");
  if (copied !== null) return copied;
  if (ended.kind === "failed") return refused(ended.reason);
  const stayed = ended.kind === "answered" && isOk(ended.body);
  return stayed ? null : refused("the state was moved while it was copied: try again");
}

/** Null: done. */
function attempt(copy: () => void): Fault | null {
  try {
    copy();
    return null;
  } catch (error) {
    return fileFault(error);
  }
}

const isOk = (body: unknown): boolean =>
  typeof body === "object" && body !== null && "ok" in body && body.ok === true;
