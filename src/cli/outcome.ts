import { writeSync } from "node:fs";

/** DESIGN 6.4: 0 ok, 1 failed, 2 usage or configuration. */
export type ExitCode = 0 | 1 | 2;

/** A line for whoever called, or for the next program in the pipe. */
export const say = (text: string): void => write(1, text);

/** A line for people: what is wrong, or what was odd. */
export const complain = (text: string): void => write(2, text);

function write(descriptor: 1 | 2, text: string): void {
  try {
    writeSync(descriptor, `${text}\n`);
  } catch (error) {
    // The reader has gone (`| head`): there is nobody to tell.
    if (!(error instanceof Error && "code" in error && error.code === "EPIPE")) throw error;
  }
}
