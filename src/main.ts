import { main } from "./cli/program.ts";

// Files that we write are for our own user: the record, its key, copies of both.
process.umask(0o077);

// Exits by itself even if something forgotten still listens: a stop must end.
process.exit(await main(process.argv.slice(2)));
