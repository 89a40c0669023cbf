import type { Charger } from "../../src/domain/charger.ts";
import type { FloorOptions } from "./brokeredFloor.ts";
import { ProfiledFloor } from "./profiledFloor.ts";
import { type Ears, SimBroker } from "./simBroker.ts";
import { type Floor, SimFloor } from "./simFloor.ts";

/** The floor of a day: native chargers, chargers of makes, or both. */
export function floorOf(options: FloorOptions, outlets: readonly Charger[]): Floor {
  const { chargers, truth: now, random } = options;
  const [native, made] = [true, false].map((isNative) =>
    chargers.filter(({ make }) => (make === undefined) === isNative),
  );
  if (made === undefined || made.length === 0) return new SimFloor(options);
  if (native === undefined || native.length === 0) return new ProfiledFloor({ ...options, outlets });
  const broker = new SimBroker({ now, random });
  const profiledOutlets = outlets.filter((_, index) => chargers[index]?.make !== undefined);
  return new TwoKindsFloor(
    new SimFloor({ ...options, broker, chargers: native }),
    new ProfiledFloor({ ...options, broker, chargers: made, outlets: profiledOutlets }),
  );
}

/** Native chargers and chargers of makes at one broker. A vehicle can move from one kind to the other. */
class TwoKindsFloor implements Floor {
  readonly unseenFor: number;
  readonly silenceIsAbsence: boolean;
  readonly #native: SimFloor;
  readonly #made: ProfiledFloor;

  constructor(native: SimFloor, made: ProfiledFloor) {
    this.#native = native;
    this.#made = made;
    this.unseenFor = made.unseenFor;
    this.silenceIsAbsence = made.silenceIsAbsence;
  }

  get told(): ReadonlyMap<string, string | null> {
    return new Map([...this.#native.told, ...this.#made.told]);
  }

  get isTold(): boolean {
    return this.#native.isTold && this.#made.isTold;
  }

  get unsure(): readonly string[] {
    return this.#native.unsure;
  }

  get isUp(): boolean {
    return this.#native.isUp;
  }

  attach(ears: Ears): void {
    for (const floor of this.#both) floor.attach(ears);
  }

  detach(): void {
    for (const floor of this.#both) floor.detach();
  }

  brokerGoes(lasts: number): void {
    for (const floor of this.#both) floor.brokerGoes(lasts);
  }

  linkBreaks(lasts: number): void {
    this.#native.linkBreaks(lasts);
  }

  isSlow(lasts: number): void {
    this.#native.isSlow(lasts);
  }

  isUnruly(lasts: number): void {
    this.#native.isUnruly(lasts);
  }

  /** A vehicle leaves before it arrives. */
  plug(charger: string, guest: string | null): void {
    const there = this.#with(charger);
    for (const floor of this.#both) if (floor !== there) floor.plug(charger, guest);
    there.plug(charger, guest);
  }

  has = (charger: string): boolean => this.#both.some((floor) => floor.has(charger));
  isMute = (charger: string, lasts: number): void => this.#with(charger).isMute(charger, lasts);
  reboots: Floor["reboots"] = (charger, ...outage) => this.#with(charger).reboots(charger, ...outage);
  isDeaf = (charger: string, lasts: number): void => this.#with(charger).isDeaf(charger, lasts);
  lies = (charger: string, lasts: number): void => this.#with(charger).lies(charger, lasts);
  repeatsOnline = (charger: string, every: number, lasts: number): void =>
    this.#with(charger).repeatsOnline(charger, every, lasts);
  claims = (charger: string, vehicle: string, lasts: number): void =>
    this.#with(charger).claims(charger, vehicle, lasts);
  /** Only native chargers name vehicles. The bay of such a vehicle may be of a make. */
  wasUnclaimed = (charger: string, since: number): boolean => this.#native.wasUnclaimed(charger, since);
  wasEmpty = (charger: string, since: number): boolean => this.#with(charger).wasEmpty(charger, since);
  isEmpty = (charger: string): boolean => this.#with(charger).isEmpty(charger);
  isReachable = (charger: string): boolean => this.#with(charger).isReachable(charger);
  isDrawing = (charger: string): boolean => this.#with(charger).isDrawing(charger);
  power = (charger: string): number => this.#with(charger).power(charger);
  reported: Floor["reported"] = (charger) => this.#with(charger).reported(charger);
  guest: Floor["guest"] = (charger) => this.#with(charger).guest(charger);
  standing: Floor["standing"] = (charger) => this.#with(charger).standing(charger);
  pretends: Floor["pretends"] = (charger) => this.#with(charger).pretends(charger);
  isWatched: Floor["isWatched"] = (charger) => this.#with(charger).isWatched(charger);
  publishState: Floor["publishState"] = (...state) => this.#native.publishState(...state);
  send: Floor["send"] = (command, ...sending) => this.#with(command.charger).send(command, ...sending);

  get #both(): readonly [Floor, Floor] {
    return [this.#native, this.#made];
  }

  #with(charger: string): Floor {
    return this.#made.has(charger) ? this.#made : this.#native;
  }
}
