/** Longer texts of `--help`. */

/** Below the list of verbs. */
export const OVERVIEW = `
Try it first, in a checkout of the source:
  npm start                       a demo: partner, broker and chargers simulated, nothing to set up

Then for real:
  setpointd check -c site.yaml    explain every mistake in a configuration
  setpointd check -c site.yaml --live
                                  then try it: token, events, webhook, brokers, topics, clock, chargers
  setpointd plan -c site.yaml --events list.json
                                  what each charger would do for these events, without doing it
  setpointd acl -c site.yaml      the access list that the broker needs for this site
  setpointd run -c site.yaml      the daemon; SIGTERM or Ctrl-C stops it, SIGHUP has it read certificates again
  setpointd webhook test -c site.yaml
                                  post a signed event to the running daemon, and see what it made of it
  setpointd status                how the site is doing, and every open problem with what to do
  setpointd poll -c site.yaml     ask the partner for its events now
  setpointd audit -c site.yaml    the record of every decision and what became of it
  setpointd backup FILE -c site.yaml
                                  a copy of everything stored, while it runs
  setpointd proof EVENT -c site.yaml
                                  all of it for one event, sealed; proof verify FILE finds an edited line
  setpointd prices -c site.yaml   spot prices as they are known
  setpointd reports -c site.yaml  reports to the partner: sent, waiting, due next
  setpointd release bay-01 -c site.yaml
                                  free a charger by hand, now
  setpointd commission bay-01 -c site.yaml
                                  try a real charger before the first event
  setpointd profile list          charger makes it speaks to; profile show NAME tells what one needs

Exit codes: 0 ok, 1 failed, 2 usage or configuration.`;

export const TRY_HELP = `
What would be published:
  {"profile":"go-e-v2","params":{"serial":"000001"},"action":"setCurrent","input":{"currentA":13.7}}
  actions: acquire, setCurrent {currentA}, setPower {powerW}, pause, resume {lastCurrentA}, release, setPhases {phases};
  params may have maxCurrentA, phases and nominalV, the charger's own limits. Levels below its minimum become a pause.
  An answer without publishes has a note why none is needed; what a make cannot do is an error.

What a message means:
  {"profile":"go-e-v2","params":{"serial":"000001"},"topic":"go-eCharger/000001/amp","payload":"13"}
  Earlier lines with the same profile and params are remembered, as some values are spread over several messages.

A line that cannot be answered gets {"error":"..."}, and the next one its own answer.`;

export const VERIFY_HELP = `
Exit code 0: nothing is wrong in what could be checked, and what could not be is said on standard error; without any
key the file is only consistent, so that a forger's work would pass. 1: a line is not as it was written, the file or the key
cannot be read, or a running daemon cannot be asked for its record.`;
