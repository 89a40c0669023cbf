/** Options of a campaign as `parse` reads them. `--help` prints the usage and ends with 0, an unknown option ends with 2. */
export function commandLine<T>(usage: string, parse: () => T): T {
  if (process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h")) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  try {
    return parse();
  } catch (error) {
    return refuseOptions(usage, error instanceof Error ? error.message : String(error));
  }
}

/** Ends the process with 2. */
export function refuseOptions(usage: string, reason: string): never {
  process.stderr.write(`${reason}\n${usage}\n`);
  process.exit(2);
}
