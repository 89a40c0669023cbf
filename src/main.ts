import { main } from "./cli/program.ts";

// Exits by itself even if something forgotten still listens: a stop must end.
process.exit(await main(process.argv.slice(2)));
