/** Answers of the operator's API, made from docs/openapi.json: npm run schema. Times are ISO, UTC. */

export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  /** A sentence for the person who asked. */
  readonly detail: string;
  /** The same as detail, for older programs. */
  readonly error: string;
  /** The faults of the request, one by one. Empty: none has a place. */
  readonly errors: readonly {
    readonly path: string;
    readonly found: unknown;
    readonly expected: string;
  }[];
}

export interface Status {
  readonly site: string;
  /** IANA name. */
  readonly timezone: string;
  readonly startedAt: string;
  readonly mode: "drive" | "observe";
  /** null: the mode is as configured. */
  readonly observing: ObservePeriod | null;
  readonly ready: boolean;
  readonly now: string;
  readonly epoch: number;
  /** Only where the state is in a database. */
  readonly leader?: {
    /** This process may command the site now. */
    readonly self: boolean;
    /** Host and process id. */
    readonly process: string;
    readonly epoch: number;
    readonly since: string;
    readonly leaseUntil: string;
    /** Address of its page. null: no other machine reaches it. */
    readonly page: string | null;
  };
  /** Last evaluation. */
  readonly lookedAt: string | null;
  /** Next moment at which something changes by itself. */
  readonly next: string | null;
  readonly partner: {
    readonly ok: boolean;
    readonly answeredAt: string | null;
    /** Last webhook delivery. null: none since the start. */
    readonly webhookAt: string | null;
    /** Last answered poll of the list. null: none since the start. */
    readonly polledAt: string | null;
    /** Since the last answer. */
    readonly failures: number;
    readonly lastFailure: string | null;
    readonly stale: boolean;
    readonly skewMs: number | null;
    /** End of the access token in use. null: no token. */
    readonly tokenUntil: string | null;
  };
  /** connected: every broker is. away: names of the others, an empty one for the site's own. */
  readonly broker: {
    readonly connected: boolean;
    readonly reason: string | null;
    readonly away: readonly string[];
  };
  readonly problems: readonly SiteProblem[];
  readonly alarms: {
    readonly open: number;
    readonly acknowledged: number;
    /** At most 20, the open ones first, the gravest first. */
    readonly list: readonly Alarm[];
  };
  readonly chargers: {
    readonly total: number;
    readonly online: number;
    readonly unreachable: number;
    readonly limited: number;
    readonly notSent: number;
    readonly followed: number;
    readonly notFollowed: number;
    readonly refused: number;
  };
  readonly holds: {
    readonly open: number;
    /** At most 20. */
    readonly list: readonly {
      readonly id: string;
      readonly scope: Scope;
      readonly kind: "exempt" | "level";
      readonly level: Level | null;
      readonly end: "at" | "unplugged" | "energy" | "events";
      readonly since: string;
      /** null: the end has no time. */
      readonly until: string | null;
      readonly by: string;
      readonly reason: string;
      /** Some of the events that it sets aside. */
      readonly events: readonly string[];
      readonly eventCount: number;
      readonly sentence: string;
    }[];
  };
  readonly events: {
    readonly known: number;
    readonly dispatches: number;
    /** At most 20, the first to end first. */
    readonly active: readonly {
      readonly id: string;
      readonly name: string;
      readonly asked: string;
      readonly vehicles: number;
      readonly start: string;
      readonly end: string;
      readonly modified: string;
    }[];
  };
  readonly certificates: readonly {
    readonly certificate: string;
    readonly subject: string;
    readonly notAfter: string;
    /** null: it does not end soon. */
    readonly alarm: string | null;
  }[];
  /** null: the site has no file of its own. */
  readonly configuration: {
    /** First 12 digits of the SHA-256 of its text. */
    readonly fingerprint: string;
    /** The configuration runs since then. */
    readonly since: string;
    /** The file, compared by its text. */
    readonly file: "same" | "differs" | "unreadable";
    /** Configuration that runs, and the one that a restart takes. */
    readonly sentence: string;
  } | null;
  /** null: no webhook listener. */
  readonly webhook: {
    readonly refused: {
      readonly [name: string]: {
        readonly count: number;
        readonly lastAt: string;
        readonly lastFrom: string;
        readonly explanation: string;
      };
    };
  } | null;
  readonly store: {
    readonly commits: number;
    readonly failures: number;
    readonly longestCommitMs: number;
    readonly failing: {
      readonly reason: string;
      readonly forMs: number;
    } | null;
    readonly bytes: number;
    /** Bytes that the disk of the state has left. null: not known. */
    readonly free: number | null;
  };
  /** Newest input that could not be read. */
  readonly quarantine: readonly {
    readonly at: string;
    readonly source: string;
    readonly event: string | null;
    readonly path: string;
    readonly reason: string;
    readonly raw: string;
  }[];
}

export interface ObservePeriod {
  readonly since: string;
  readonly until: string;
  readonly by: string;
  readonly reason: string;
  readonly sentence: string;
}

export interface SiteProblem {
  readonly since: string | null;
  readonly kind: "disk" | "database" | "clock" | "broker" | "partner" | "skew" | "webhook" | "publish" | "refused" | "notFollowed" | "contradicted" | "unknownVehicle" | "offline" | "silent" | "neverHeard" | "stranded" | "reports" | "retention" | "notify" | "access" | "configuration";
  /** null: the whole site. */
  readonly subject: string | null;
  readonly message: string;
  /** The remedy. */
  readonly action: string;
}

export interface Alarm {
  readonly key: string;
  readonly kind: string;
  readonly severity: "info" | "warning" | "critical";
  readonly state: "open" | "acknowledged" | "cleared";
  readonly since: string;
  readonly lastSeen: string;
  /** End of the fact, also while the alarm stays open for its quiet time. null: the fact holds. */
  readonly goneSince: string | null;
  readonly clearedAt: string | null;
  /** Beginnings of the fact within this alarm. */
  readonly count: number;
  /** null: the whole site. */
  readonly subject: string | null;
  readonly message: string;
  /** The remedy. */
  readonly action: string;
  readonly acknowledged: {
    readonly at: string;
    readonly by: string;
    readonly note: string;
  } | null;
}

export type Scope = {
  readonly vehicle: string;
} | {
  readonly charger: string;
} | {
  readonly site: true;
};

export interface Level {
  readonly currentA?: number;
  readonly powerW?: number;
  readonly pause?: true;
  /** The charger decides by itself. */
  readonly release?: true;
}

export interface StandInStatus {
  readonly site: string;
  /** IANA name. */
  readonly timezone: string;
  /** Since when this process stands by. */
  readonly startedAt: string;
  readonly now: string;
  readonly ready: false;
  readonly sentence: string;
  /** null: no process leads the site now. */
  readonly leader: {
    /** This process may command the site now. */
    readonly self: boolean;
    /** Host and process id. */
    readonly process: string;
    readonly epoch: number;
    readonly since: string;
    readonly leaseUntil: string;
    /** Address of its page. null: no other machine reaches it. */
    readonly page: string | null;
  } | null;
  /** Reason why the database does not answer. null: it does. */
  readonly database: string | null;
}

export interface Site {
  readonly site: string;
  /** IANA name. */
  readonly timezone: string;
  readonly version: string;
  /** Lanes of the yard, each with its chargers in order. */
  readonly board: readonly (readonly string[])[];
  /** Planned work. */
  readonly maintenance: readonly Maintenance[];
  /** Profile of each charger. */
  readonly makes: {
    readonly [name: string]: string;
  };
  /** Electrical facts of each charger. */
  readonly ratings: {
    readonly [name: string]: Rating;
  };
  /** Main fuse, in A per phase. null: not configured. */
  readonly fuseA: number | null;
}

export interface Maintenance {
  readonly name: string;
  readonly from: string;
  readonly until: string;
  /** []: the whole site. */
  readonly bays: readonly string[];
}

export interface Rating {
  readonly phases: number;
  /** V, phase to neutral. */
  readonly voltage: number;
  /** Per phase. null: not configured. */
  readonly maxCurrentA: number | null;
  /** null: not configured. */
  readonly maxPowerW: number | null;
}

export type EnergyEvent = {
  readonly id: string;
  readonly name: string;
  readonly programId: string;
  readonly state: "planned" | "active" | "ended";
  readonly priority: number | null;
  readonly start: string;
  /** Without the random start. */
  readonly end: string;
  readonly randomizeStartMs: number;
  readonly ask: Ask;
  readonly vehicles: readonly string[];
  readonly foreignVehicles: number;
  /** Some of the foreign vehicles, each with the vehicle of ours that was probably meant. */
  readonly unknownVehicles: readonly {
    readonly id: string;
    readonly didYouMean: string | null;
  }[];
  /** Warnings about the event. */
  readonly odd: readonly string[];
  readonly reportDescriptors: number;
  readonly source: string;
  readonly receivedAt: string;
  readonly modified: string;
} | {
  readonly id: string;
  readonly state: "withdrawn";
  readonly withdrawnAt: string;
};

export type Ask = {
  readonly kind: "current" | "power";
  readonly level: number;
} | {
  readonly kind: "unknown";
  readonly payloadType: string;
};

export interface Charger {
  readonly charger: string;
  /** Name of its broker in the configuration. Empty: the site's own. */
  readonly broker: string;
  readonly vehicle: string | null;
  readonly occupant: "vehicle" | "unknown" | "nobody";
  readonly asked: {
    readonly kind: "current" | "power" | "pause" | "release";
    /** null: a pause or a release. */
    readonly value: number | null;
    readonly unit: "A" | "W" | null;
    readonly event: string;
  } | null;
  /** Level of the last command, within all limits. */
  readonly allowed: Setpoint | null;
  readonly measured: {
    readonly at: string;
    readonly state: string | null;
    readonly powerW: number | null;
    readonly currentsA: readonly number[] | null;
    readonly limitA: number | null;
  } | null;
  readonly hold: HoldFacts | null;
  readonly online: boolean | null;
  /** null: no message so far. */
  readonly reachable: boolean | null;
  readonly heardAt: string | null;
  readonly verdict: Progress;
  /** Id of the last command: epoch-seq. */
  readonly command: string | null;
  readonly reason: Reason | null;
  readonly until: string | null;
  /** Percent. */
  readonly soc: number | null;
  /** null: not reported. */
  readonly firmware: string | null;
  /** Restarts that setpointd noticed. */
  readonly restarts: {
    /** starts: those that it reports itself. returns: it reports none, so each return counts, also after a lost connection. */
    readonly counted: "starts" | "returns";
    /** Since the start of setpointd. */
    readonly count: number;
    readonly lastAt: string | null;
  };
  /** The last one that a person asked for. null: none since the start. */
  readonly reboot: Reboot | null;
  /** null: writes are not limited. */
  readonly writes: {
    readonly lastHour: number;
    readonly most: number;
  } | null;
  readonly commissioning: boolean;
  /** The vehicle that a person named. null: nobody did. */
  readonly binding: Binding | null;
}

export interface Setpoint {
  readonly kind: "current" | "power" | "pause" | "release";
  /** null: a pause or a release. */
  readonly value: number | null;
  readonly unit: "A" | "W" | null;
}

export interface HoldFacts {
  readonly id: string;
  readonly scope: Scope;
  readonly kind: "exempt" | "level";
  readonly level: Level | null;
  readonly end: "at" | "unplugged" | "energy" | "events";
  readonly since: string;
  /** null: the end has no time. */
  readonly until: string | null;
  readonly by: string;
  readonly reason: string;
  /** Some of the events that it sets aside. */
  readonly events: readonly string[];
  readonly eventCount: number;
}

/** Progress of the last command. none: never commanded. */
export type Progress = "none" | "planned" | "acknowledged" | "accepted" | "refused" | "followed" | "notFollowed" | "observed";

export interface Reason {
  /** A sentence for people. */
  readonly words: string;
  readonly cause: string;
  readonly until: string | null;
  /** Rule that delays an increase. */
  readonly held: {
    readonly by: string;
    readonly until: string;
  } | null;
  readonly winner: {
    readonly event: string;
    readonly priority: number | null;
    readonly asked: string;
    readonly from: string;
    readonly until: string;
    readonly offsetMs: number;
    readonly spreadMs: number;
    readonly cutAt: string | null;
  } | null;
  /** At most 5, the best first. */
  readonly overruled: readonly {
    readonly event: string;
    readonly priority: number | null;
    readonly asked: string;
    readonly from: string;
    readonly until: string;
    readonly offsetMs: number;
    readonly spreadMs: number;
    readonly cutAt: string | null;
  }[];
  readonly overruledCount: number;
  readonly limits: readonly {
    readonly by: string;
    readonly asked: string;
    readonly allowed: string;
  }[];
  readonly occupant: {
    readonly kind: "vehicle";
    readonly vehicle: string;
    readonly source: string;
  } | {
    readonly kind: "unknown";
    readonly said: string;
  } | {
    readonly kind: "nobody";
  } | null;
  readonly hold: HoldFacts | null;
}

export interface Reboot {
  readonly id: string;
  readonly by: string;
  readonly reason: string;
  readonly at: string;
  /** missing: not heard again within withinS. unnoticed: never away within withinS. failed: no broker took it. */
  readonly progress: "asked" | "sent" | "accepted" | "away" | "back" | "refused" | "failed" | "missing" | "unnoticed";
  /** Time of this progress. */
  readonly changedAt: string;
  /** Time for the reboot, in s. */
  readonly withinS: number;
  readonly sentence: string;
}

export interface Binding {
  readonly vehicle: string;
  readonly by: string;
  readonly reason: string;
  readonly since: string;
}

export interface Vehicle {
  readonly id: string;
  readonly name: string;
  readonly charger: string | null;
  /** Id of the last command of its charger. */
  readonly command: string | null;
  readonly planned: readonly {
    readonly event: string;
    readonly from: string;
    readonly until: string;
    readonly offsetMs: number;
    readonly asked: {
      readonly kind: "current";
      readonly amperes: number;
    } | {
      readonly kind: "power";
      readonly watts: number;
    };
  }[];
  readonly departure: Departure | null;
}

export interface Departure {
  readonly vehicle: string;
  readonly name: string;
  /** null: the vehicle is at no charger. */
  readonly charger: string | null;
  readonly at: string;
  readonly need: {
    readonly energyWh: number;
  } | {
    readonly soc: number;
  };
  readonly source: "weekly" | "api" | "csv";
  /** null: from the configuration. */
  readonly by: string | null;
  /** ready: it has what it needs. unknown: missing names what is not known. */
  readonly state: "ready" | "onTime" | "short" | "unknown";
  readonly leavesInS: number;
  readonly deliveredWh: number | null;
  readonly soc: number | null;
  /** Energy that is missing until the need is met. */
  readonly remainingWh: number | null;
  readonly powerW: number | null;
  /** By the plan and the measured power. null: never, or not known. */
  readonly readyAt: string | null;
  /** Seconds from readyAt to the departure; negative: late. */
  readonly slackS: number | null;
  readonly short: {
    readonly energyWh: number;
  } | null;
  readonly cause: "event" | "hold" | "charger" | "vehicle" | "time" | "notPluggedIn" | null;
  readonly because: string;
  readonly missing: readonly string[];
  /** Assumptions, such as a slower end of the charge. */
  readonly assumed: readonly string[];
  /** From then on the departure guard frees the vehicle from events. null: it does not. */
  readonly guardFrom: string | null;
}

export interface PriceSeries {
  /** The region, and for a forecast /forecast behind it. */
  readonly id: string;
  readonly region: string;
  readonly kind: "actual" | "forecast";
  /** null: never. */
  readonly fetchedAt: string | null;
  /** Result of the last request. null: none since the start. */
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly doubts: readonly string[];
  readonly prices: readonly {
    readonly start: string;
    readonly end: string;
    readonly value: number;
    readonly currency: string | null;
    /** Amount of energy, e.g. kWh. */
    readonly perUnit: string | null;
    readonly region: string;
    /** As the partner sends it. rate 0.25 is 25 %. */
    readonly vat: {
      readonly rate: number | null;
      readonly hasVAT: boolean | null;
    } | null;
  }[];
  /** Beginning of the answer. */
  readonly raw: string | null;
}

export interface Report {
  readonly name: string;
  readonly event: string;
  readonly descriptor: number;
  readonly payloadType: string | null;
  readonly state: "planned" | "waiting" | "sent" | "flagged";
  readonly from: string | null;
  readonly until: string | null;
  /** null: it is composed, or never will be. */
  readonly due: string | null;
  readonly summary: string | null;
  readonly flags: readonly string[];
  readonly composedAt: string | null;
  readonly sentAt: string | null;
  readonly nextTry: string | null;
  readonly attempts: number;
  readonly status: number | null;
  readonly reason: string | null;
  readonly receipt: string | null;
}

export interface AuditRow {
  readonly seq: number;
  readonly at: string;
  readonly kind: "daemon" | "event" | "rejected" | "decision" | "outcome" | "missed" | "silence" | "prices" | "report" | "operator" | "checkpoint";
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly event: string | null;
  readonly command: string | null;
  readonly words: string;
  /** The same as words for programs; its members depend on the row. observed: true: a decision of a site that only observes, which is not sent. */
  readonly facts: unknown;
  readonly hash: string;
  /** Entries of a shared row up to this one: after=seq.part goes on. */
  readonly part?: number;
}

export interface RecordCheck {
  readonly ok: boolean;
  /** Rows of the record, all of them whole. */
  readonly rows?: number;
  /** Hash of the last row. */
  readonly head?: string;
  readonly readings?: number;
  readonly unsigned?: number;
  /** The first wrong row. null: the fault lies outside the record. */
  readonly seq?: number | null;
  readonly reason?: string;
}

export interface Explanation {
  readonly sentence: string;
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly at: string;
  /** The winner first. */
  readonly claims: readonly Claim[];
  /** The level without any event. */
  readonly without: {
    readonly level: Level;
    /** null: no limit is configured. */
    readonly most: Level | null;
  };
  readonly departure: Departure | null;
}

export interface Claim {
  readonly kind: "event" | "hold" | "limit" | "default";
  /** Id of the event or hold, or the name of the limit. */
  readonly source: string;
  readonly level: Level | null;
  readonly since: string | null;
  readonly until: string | null;
  readonly status: "wins" | "overruled" | "limits" | "waits" | "over";
  readonly because: string;
}

export interface Handover {
  readonly site: string;
  readonly since: string;
  readonly now: string;
  readonly sentence: string;
  readonly mode: {
    readonly mode: "drive" | "observe";
    readonly configured: "drive" | "observe";
    /** Effect of observe on limited chargers. null: in the answer to drive. */
    readonly onObserve: "release" | "keep" | null;
    /** null: the mode is as configured. */
    readonly observing: ObservePeriod | null;
    readonly sentence: string;
    /** Beginnings and ends of observe periods in the shift. */
    readonly changes: readonly {
      readonly at: string;
      readonly message: string;
    }[];
  };
  /** Events with a window in the shift, the newest start first, at most 20. */
  readonly events: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: "active" | "ended";
    readonly asked: string;
    readonly start: string;
    /** With the largest random start. */
    readonly end: string;
    readonly modified: string;
    /** Number of vehicles of this site. */
    readonly vehicles: number;
    readonly followed: {
      readonly count: number;
      /** At most 100. */
      readonly vehicles: readonly string[];
    };
    /** Refused, or measured as not followed. */
    readonly notFollowed: {
      readonly count: number;
      /** At most 100. */
      readonly vehicles: readonly string[];
    };
    /** Freed from the event by a hold. */
    readonly held: {
      readonly count: number;
      /** At most 100. */
      readonly vehicles: readonly string[];
    };
    /** The window passed without action. */
    readonly missed: {
      readonly count: number;
      /** At most 100. */
      readonly vehicles: readonly string[];
    };
    /** No verdict: too short, not begun, or at no charger. */
    readonly notJudged: number;
  }[];
  /** By the partner, in the shift. */
  readonly withdrawn: readonly {
    readonly id: string;
    readonly at: string;
  }[];
  /** Opened or ended in the shift, or still open. */
  readonly holds: readonly Hold[];
  /** Open, or cleared in the shift; the newest first. */
  readonly alarms: readonly Alarm[];
  /** Vehicles that will leave short. */
  readonly short: readonly Departure[];
  /** Chargers and brokers. */
  readonly unreachable: readonly SiteProblem[];
  /** Within the next 12 hours, the next first, at most 100. */
  readonly due: readonly {
    readonly at: string;
    readonly kind: "eventStarts" | "eventEnds" | "holdEnds" | "observeEnds" | "departure";
    /** Id of the event, hold or vehicle; mode for observeEnds. */
    readonly subject: string;
    readonly message: string;
  }[];
}

export interface Hold {
  readonly id: string;
  readonly scope: Scope;
  readonly kind: "exempt" | "level";
  readonly level: Level | null;
  readonly end: "at" | "unplugged" | "energy" | "events";
  readonly since: string;
  /** null: the end has no time. */
  readonly until: string | null;
  readonly by: string;
  readonly reason: string;
  /** Some of the events that it sets aside. */
  readonly events: readonly string[];
  readonly eventCount: number;
  readonly sentence: string;
  readonly energyWh: number | null;
  readonly deliveredWh: number | null;
  readonly state: "open" | "ended";
  readonly ended: {
    readonly at: string;
    readonly by: string;
    readonly why: string;
  } | null;
  /** null: not computed yet. */
  readonly costs: readonly HoldCost[] | null;
  readonly chargers: number;
  /** At most 100 in a list. */
  readonly effect: readonly HoldEffect[];
}

export interface HoldCost {
  readonly event: string;
  readonly sentence: string;
  /** By the plan, when the hold opened. null: not known. */
  readonly estimatedWh: number | null;
  /** By the meters, two minutes after the end of the hold. null: not yet. */
  readonly measured: {
    /** null: no vehicle has readings. */
    readonly wh: number | null;
    /** Vehicles that the hold freed from the event. */
    readonly vehicles: number;
    /** Vehicles of these without readings. */
    readonly unknown: number;
  } | null;
}

export interface HoldEffect {
  readonly charger: string;
  readonly vehicle: string | null;
  readonly level: Level | null;
  /** false: another hold applies. */
  readonly applies?: boolean;
  readonly limits?: readonly string[];
  /** Events. */
  readonly overrules?: readonly string[];
  /** Condition that keeps the level from the charger. */
  readonly waits?: string | null;
  readonly verdict: Progress;
}

export interface Readings {
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly from: string;
  readonly until: string;
  /** A, of the most loaded phase. */
  readonly current: readonly Point[];
  /** W. */
  readonly power: readonly Point[];
  /** Percent. */
  readonly soc: readonly Point[];
  /** A, as the charger reports it. */
  readonly limit: readonly Point[];
  readonly setpoints: readonly {
    readonly at: string;
    readonly level: Level;
    readonly event: string | null;
  }[];
}

/** Ms since 1970, and the value then. */
export type Point = readonly [number, number];

export interface SitePower {
  readonly from: string;
  readonly until: string;
  readonly samples: readonly PowerSample[];
}

export interface PowerSample {
  readonly at: string;
  /** null: nothing is on record. */
  readonly measuredW: number | null;
  /** The most that the setpoints of then allowed. */
  readonly atMostW: number | null;
}

export interface Configuration {
  /** null: the site has no file of its own, so the rest says same. */
  readonly file: string | null;
  /** Fingerprint of the file. null: it cannot be read. */
  readonly fingerprint: string | null;
  /** differs: it can be applied. broken: it has mistakes, so it cannot. */
  readonly state: "same" | "differs" | "broken" | "unreadable";
  /** Differing paths, at most 20. null: not compared. */
  readonly paths: readonly string[] | null;
  /** The same, with what the file does to each. */
  readonly changes: readonly {
    readonly path: string;
    readonly change: "added" | "removed" | "changed";
  }[] | null;
  /** At most 20. */
  readonly mistakes: readonly {
    readonly path: string;
    readonly line: number | null;
    readonly expected: string;
  }[];
  /** Differing paths that cannot be applied: they need a restart of the process. */
  readonly needsRestart: readonly string[];
  readonly running: {
    /** First 12 digits of the SHA-256 of its text. */
    readonly fingerprint: string;
    readonly since: string;
    /** null: no person applied it, it was the file at a start. */
    readonly by: string | null;
    readonly reason: string | null;
    /** rollback, fallback: a restart keeps it until the file changes or is applied. fallback: the file did not start. */
    readonly because: "file" | "rollback" | "fallback";
    /** Configuration that runs, and the one that a restart takes. */
    readonly sentence: string;
  } | null;
  /** The last ten that ran, the newest first. */
  readonly kept: readonly {
    /** First 12 digits of the SHA-256 of its text. */
    readonly fingerprint: string;
    /** Moment at which it was put in force. */
    readonly at: string;
    readonly by: string | null;
    readonly reason: string | null;
    /** Paths that differ from what runs. null: not compared. */
    readonly paths: readonly string[] | null;
  }[];
  /** Reasons against a change now, at most 20. Only force overrides them. */
  readonly interrupts: readonly {
    readonly kind: "event" | "trial" | "leaving";
    /** Event or charger. */
    readonly subject: string;
    readonly sentence: string;
  }[];
  /** Behaviour of limited chargers while setpointd starts again: control.onStop. */
  readonly onStop: "keep" | "release" | "pause";
  /** Chargers that are limited now. */
  readonly limited: number;
  /** Ms without control, as measured last. null: not yet. */
  readonly restartMs: number | null;
  /** The last change by a person. */
  readonly last: {
    readonly kind: "apply" | "rollback";
    /** First 12 digits of the SHA-256 of its text. */
    readonly fingerprint: string;
    /** First 12 digits of the SHA-256 of its text. */
    readonly from: string;
    /** Fingerprint of the file at that time. */
    readonly file: string;
    /** fellBack: from runs again. */
    readonly result: "underWay" | "running" | "fellBack";
    readonly failure: string | null;
    readonly tookMs: number | null;
    readonly at: string;
    readonly by: string;
    readonly reason: string;
  } | null;
}

export interface ChangedConfiguration {
  readonly kind: "apply" | "rollback";
  /** Configuration that setpointd starts with. */
  readonly fingerprint: string;
  /** Configuration that runs until then, and again if the new one does not start. */
  readonly from: string;
  /** Ms without control, as measured last. null: not yet. */
  readonly restartMs: number | null;
  readonly sentence: string;
}

export interface OpenedHold {
  readonly id: string;
  readonly scope: Scope;
  readonly kind: "exempt" | "level";
  readonly level: Level | null;
  readonly end: "at" | "unplugged" | "energy" | "events";
  readonly since: string;
  /** null: the end has no time. */
  readonly until: string | null;
  readonly by: string;
  readonly reason: string;
  /** Some of the events that it sets aside. */
  readonly events: readonly string[];
  readonly eventCount: number;
  readonly sentence: string;
  readonly energyWh: number | null;
  readonly deliveredWh: number | null;
  readonly state: "open" | "ended";
  readonly ended: {
    readonly at: string;
    readonly by: string;
    readonly why: string;
  } | null;
  /** null: not computed yet. */
  readonly costs: readonly HoldCost[] | null;
  readonly chargers: number;
  /** At most 100 in a list. */
  readonly effect: readonly HoldEffect[];
  /** Open holds that apply to the same chargers. */
  readonly others: readonly {
    readonly id: string;
    readonly scope: Scope;
    readonly sentence: string;
  }[];
}

export interface HoldPreview {
  readonly sentence: string;
  readonly until: string;
  readonly chargers: number;
  /** Energy that the hold takes from each event: drawn above the level of the event. */
  readonly costs: readonly HoldCost[];
  /** Departures of the vehicles at these chargers, as they would be under the hold. */
  readonly departures: readonly Departure[];
  /** Open holds that apply to the same chargers. */
  readonly others: readonly {
    readonly id: string;
    readonly scope: Scope;
    readonly sentence: string;
  }[];
}

export interface Mode {
  readonly mode: "drive" | "observe";
  readonly configured: "drive" | "observe";
  /** Effect of observe on limited chargers. null: in the answer to drive. */
  readonly onObserve: "release" | "keep" | null;
  /** null: the mode is as configured. */
  readonly observing: ObservePeriod | null;
  readonly sentence: string;
}

export interface ChangedMode {
  readonly mode: "drive" | "observe";
  readonly configured: "drive" | "observe";
  /** Effect of observe on limited chargers. null: in the answer to drive. */
  readonly onObserve: "release" | "keep" | null;
  /** null: the mode is as configured. */
  readonly observing: ObservePeriod | null;
  readonly sentence: string;
  /** The period that was open before. */
  readonly replaced: ObservePeriod | null;
  /** Chargers that were limited. */
  readonly limited: readonly string[];
}

export interface BrokerTrials {
  readonly at: string;
  readonly by: string;
  readonly reason: string;
  /** Every broker passed. */
  readonly passed: boolean;
  readonly brokers: readonly BrokerTrial[];
}

export interface BrokerTrial {
  /** Section of the configuration: mqtt, or brokers.NAME. */
  readonly broker: string;
  /** Connected, and no topic is refused. */
  readonly passed: boolean;
  /** The broker runs inside setpointd, and has its access list. */
  readonly isEmbedded: boolean;
  /** null: not connected. */
  readonly connectedSince: string | null;
  /** Why it is not connected. */
  readonly trouble: string | null;
  readonly mqtt: "5" | "3.1.1" | null;
  /** Its secret part is masked. */
  readonly clientId: string;
  /** User name of the login. null: none is sent. */
  readonly username: string | null;
  /** Counts of topics of the access list. */
  readonly topics: {
    readonly allowed: number;
    readonly refused: number;
    /** The broker does not tell. */
    readonly untold: number;
    /** Nothing was published there since it connected. */
    readonly unused: number;
  };
  /** At most 50. */
  readonly refused: readonly TopicFinding[];
  /** At most 50. */
  readonly untold: readonly TopicFinding[];
  /** Topics of chargers on which no client listens, at most 50. */
  readonly unheard: readonly string[];
  /** Lines of the broker's access list that allow what is refused. */
  readonly acl: readonly string[];
}

export interface TopicFinding {
  /** write: a publish. read: a subscription. */
  readonly access: "write" | "read";
  readonly topic: string;
  readonly found: string;
}

export interface Trial {
  readonly charger: string;
  readonly plan: {
    /** Sent one after the other. Empty: the charger has no maximum to try. */
    readonly levels: readonly Level[];
    /** Longest wait for the effect of each level. */
    readonly waitS: number;
    readonly silence: {
      /** Promise of its profile, without messages. */
      readonly effect: string;
      readonly afterS: number;
    };
  };
  /** Reason why it cannot be tried now. null: it can. */
  readonly hindrance: string | null;
  /** The last trial that was asked for over the API since the start. null: none. */
  readonly run: TrialRun | null;
}

export interface TrialRun {
  readonly since: string;
  readonly by: string;
  readonly reason: string;
  /** Its silence is tried as well. */
  readonly silence: boolean;
  readonly steps: readonly {
    readonly at: string;
    readonly message: string;
  }[];
  /** null: it runs. */
  readonly endedAt: string | null;
  readonly result: {
    readonly good: boolean;
    /** null: nothing was tried. */
    readonly sentence: string | null;
    /** A failure outside of the trial. */
    readonly complaint: string | null;
    readonly levels: readonly {
      readonly asked: string;
      /** Per phase. null: not reported. */
      readonly drawnA: number | null;
      readonly effect: "followed" | "notFollowed" | "unmeasured";
      readonly confirmedAfterMs: number | null;
      /** Not sent, refused, or why it cannot be measured. */
      readonly trouble: string | null;
    }[];
  } | null;
}

export interface Resent {
  readonly charger: string;
  readonly vehicle: string | null;
  /** Id of the command that is sent again. */
  readonly command: string;
  readonly level: Level;
  readonly sentence: string;
}

export interface BoundVehicle {
  readonly vehicle: string;
  readonly by: string;
  readonly reason: string;
  readonly since: string;
  readonly charger: string;
  /** Charger at which the vehicle counted before. */
  readonly from: string | null;
  /** Level of the charger now. */
  readonly level: Level | null;
  readonly sentence: string;
}

export interface RebootPreview {
  readonly charger: string;
  readonly vehicle: string | null;
  /** Reason why it cannot be rebooted now. null: it can. */
  readonly hindrance: string | null;
  /** Consequences of a reboot now. */
  readonly will: readonly string[];
  /** The last one since the start of setpointd. null: none. */
  readonly last: Reboot | null;
}

export interface EventPlan {
  readonly event: string;
  readonly now: string;
  /** Vehicles of this site whose window has not ended. */
  readonly vehicles: number;
  /** observe: nothing of it is sent. */
  readonly mode: "drive" | "observe";
  /** At most 1000, the first to start first. */
  readonly rows: readonly PlannedVehicle[];
}

export interface PlannedVehicle {
  readonly vehicle: string;
  /** null: at no charger now. */
  readonly charger: string | null;
  readonly from: string;
  readonly until: string;
  readonly offsetMs: number;
  readonly asked: Level;
  /** At the start. limited: charger or vehicle allow another level. overruled: by winner. */
  readonly outcome: "asked" | "limited" | "overruled" | "held" | "absent";
  /** null: at no charger now. */
  readonly gets: Level | null;
  /** Event whose level it gets. null: none. */
  readonly winner: string | null;
  /** Hold that applies. null: none. */
  readonly hold: string | null;
  readonly limits: readonly string[];
  /** Events that take over while this one lasts. */
  readonly interrupted: readonly {
    readonly event: string;
    readonly from: string;
    readonly until: string;
  }[];
}

export interface ProofFact {
  readonly section: "proof" | "asked" | "summary" | "vehicle" | "site" | "report" | "record" | "seal";
  readonly what: string;
  readonly vehicle?: string;
  readonly charger?: string;
  readonly command?: string;
  readonly from?: string;
  readonly until?: string;
  readonly value?: number;
  readonly unit?: string;
  readonly words?: string;
  /** Row of the record that holds this fact. */
  readonly seq?: number;
  /** Hash of the row before. */
  readonly previous?: string;
  readonly hash?: string;
  /** Hash over this fact and all before it. */
  readonly print: string;
}

export interface ClearedDeparture {
  readonly vehicle: string;
  readonly next: Departure | null;
}

export interface SkippedDeparture {
  readonly vehicle: string;
  readonly date: string;
  readonly next: Departure | null;
}

export interface ImportedDepartures {
  readonly departures: number;
  readonly vehicles: number;
}

export interface Person {
  readonly name: string;
  readonly role: Role;
  /** open: the listener has no login. */
  readonly via: "open" | "session" | "token";
}

export type Role = "viewer" | "operator" | "integrator";

export interface Token {
  readonly name: string;
  readonly role: "viewer" | "operator" | "integrator";
  readonly addedAt: string;
  /** null: it does not expire. */
  readonly expiresAt: string | null;
}

export interface Fleet {
  readonly now: string;
  readonly sites: number;
  /** Sites that no process leads. */
  readonly unled: number;
  /** Sites with open alarms. */
  readonly alarms: number;
  readonly processes: readonly FleetProcess[];
}

export interface FleetProcess {
  /** Host and process id. */
  readonly process: string;
  /** The process that answers. */
  readonly self: boolean;
  /** Sites that it leads. */
  readonly led: number;
  /** Sites that it may lead. */
  readonly most: number;
  /** Sites that it can start now. */
  readonly room: number;
}

export interface FleetSite {
  readonly site: string;
  /** Host and process id. null: no process leads the site. */
  readonly leader: string | null;
  /** Since when it leads. */
  readonly since: string | null;
  /** Number of its term. */
  readonly epoch: number;
  /** Vehicles of the site. */
  readonly vehicles: number;
  /** Rows of the record. */
  readonly rows: number;
  /** Last put of the site file. */
  readonly putAt: string;
  /** True: the process that answers leads it. */
  readonly self: boolean;
  /** True: its chargers were evaluated since the start of the term. null: another process leads the site. */
  readonly ready: boolean | null;
  readonly chargers: number | null;
  /** Chargers that are online and not silent. */
  readonly live: number | null;
  /** Open alarms. */
  readonly alarms: number | null;
  /** Severity of the gravest open alarm. null: there is none. */
  readonly worst: "info" | "warning" | "critical" | null;
  /** Last report of chargers, live, alarms and worst by a leader: at least once a minute. null: none yet. */
  readonly stateAt: string | null;
  /** Address of the page of the site at its leader. null: this machine reaches none. */
  readonly page: string | null;
}
