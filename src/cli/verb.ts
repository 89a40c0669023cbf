import type { Command } from "commander";

import type { Instant } from "../domain/units.ts";
import type { ExitCode } from "./output.ts";

/** Inputs of every verb. */
interface VerbContext {
  /** Value of `--config`. Undefined: not given. */
  readonly config: () => string | undefined;
  readonly now: () => Instant;
  readonly randomBytes: (count: number) => Buffer;
  /** Receives the exit code. */
  readonly done: (code: ExitCode) => void;
}

/** Adds options, help and action to the command of a verb. `program.ts` has the table of verbs. */
export type Verb = (verb: Command, context: VerbContext) => void;
