import * as z from "zod";

/**
 * The documented members of Home Assistant's MQTT device discovery, as far as they are used here: device, origin,
 * components, and the options of sensor, binary_sensor, button and number. Any other member is refused.
 */

const subscribed = z.string().regex(/^\S+$/);
/** A topic to publish on has no wildcard. */
const published = z.string().regex(/^[^+#\s]+$/);
const template = z
  .string()
  .refine((text) => (text.match(/\{\{/g)?.length ?? 0) <= (text.match(/\}\}/g)?.length ?? 0));
const qos = z.union([z.literal(0), z.literal(1), z.literal(2)]);

const entity = {
  unique_id: z.string().min(1),
  name: z.string().min(1).nullable(),
  icon: z
    .string()
    .regex(/^[\w-]+:[\w-]+$/)
    .optional(),
  entity_category: z.enum(["config", "diagnostic"]).optional(),
  enabled_by_default: z.boolean().optional(),
  json_attributes_topic: subscribed.optional(),
  json_attributes_template: template.optional(),
  qos: qos.optional(),
};

/** Units that each device class of a sensor or number allows. */
const UNITS: Readonly<Record<string, readonly string[]>> = {
  power: ["mW", "W", "kW", "MW"],
  current: ["A", "mA"],
  timestamp: [],
  enum: [],
};

const hasUnitOfClass = (config: {
  readonly device_class?: string | undefined;
  readonly unit_of_measurement?: string | undefined;
}) => {
  const { device_class: kind, unit_of_measurement: unit } = config;
  if (kind === undefined) return true;
  const units = UNITS[kind] ?? [];
  return unit === undefined ? units.length === 0 : units.includes(unit);
};

const sensor = z
  .strictObject({
    ...entity,
    platform: z.literal("sensor"),
    device_class: z.enum(["power", "current", "timestamp", "enum"]).optional(),
    state_class: z.enum(["measurement", "total", "total_increasing"]).optional(),
    options: z.array(z.string()).min(1).optional(),
    unit_of_measurement: z.string().optional(),
    value_template: template.optional(),
  })
  .refine(hasUnitOfClass)
  .refine(({ options, device_class, state_class, unit_of_measurement }) =>
    options === undefined
      ? device_class !== "enum"
      : device_class === "enum" && state_class === undefined && unit_of_measurement === undefined,
  );

const binarySensor = z.strictObject({
  ...entity,
  platform: z.literal("binary_sensor"),
  device_class: z.enum(["problem", "running"]).optional(),
  payload_on: z.string().optional(),
  payload_off: z.string().optional(),
  value_template: template.optional(),
});

const button = z.strictObject({
  ...entity,
  platform: z.literal("button"),
  command_topic: published,
  command_template: template.optional(),
  payload_press: z.string().optional(),
  retain: z.boolean().optional(),
});

const number = z
  .strictObject({
    ...entity,
    platform: z.literal("number"),
    command_topic: published,
    command_template: template.optional(),
    value_template: template.optional(),
    device_class: z.enum(["power", "current"]).optional(),
    unit_of_measurement: z.string().optional(),
    min: z.number(),
    max: z.number(),
    step: z.number().min(0.001),
    mode: z.enum(["auto", "box", "slider"]).optional(),
    retain: z.boolean().optional(),
  })
  .refine(({ min, max }) => min < max)
  .refine(hasUnitOfClass);

export const deviceDiscovery = z.strictObject({
  device: z.strictObject({
    identifiers: z.array(z.string()).min(1),
    name: z.string().optional(),
    manufacturer: z.string().optional(),
    model: z.string().optional(),
    sw_version: z.string().optional(),
    via_device: z.string().optional(),
  }),
  origin: z.strictObject({ name: z.string(), sw_version: z.string().optional() }),
  components: z.record(z.string(), z.discriminatedUnion("platform", [sensor, binarySensor, button, number])),
  availability: z
    .array(
      z.strictObject({
        topic: subscribed,
        payload_available: z.string().optional(),
        payload_not_available: z.string().optional(),
      }),
    )
    .optional(),
  state_topic: subscribed.optional(),
  qos: qos.optional(),
});
