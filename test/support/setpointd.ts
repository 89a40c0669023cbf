import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
/** Compiled code of the processes that tests start: half of the processor time of a start. */
const CODE = fileURLToPath(new URL("../../node_modules/.cache/setpointd-tests", import.meta.url));

/** What a process of ours said and how it ended. */
export interface Said {
  /** Null: ended by a signal. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Calling {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Run by this command. */
  readonly within?: readonly string[];
}

/** Starts `setpointd` as a process of its own, with nothing of our environment but the PATH; `within`: run by this command. */
export function launch(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  within: readonly string[] = [],
): ChildProcess {
  const [program = "", ...rest] = [...within, process.execPath, MAIN, ...args];
  return spawn(program, rest, {
    env: { PATH: process.env["PATH"] ?? "", NODE_COMPILE_CACHE: CODE, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

/** Runs one verb to its end. */
export async function setpointd(
  args: readonly string[],
  { env = {}, input = "", within = [] }: Calling = {},
): Promise<Said> {
  const child = launch(args, env, within);
  const said = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk: Buffer) => (said.stdout += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (said.stderr += chunk.toString()));
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  const code = await new Promise<number | null>((ended) => child.once("close", ended));
  return { code, ...said };
}
