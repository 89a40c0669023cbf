"""A charge point of OCPP 1.6J on the library of mobilityhouse: software that is not ours.

Draws 3 x 32 A at 230 V while a transaction runs, less where its charging profiles say so. Prints one JSON object per line.
The line "stop" on its input ends the session. A Reset ends it as well; after the restart another one begins. Messages of the transaction wait while it is not connected.
usage: chargePoint.py URL IDENTITY PASSWORD [MODE]; MODE: follow (default), ignore, refuse, noSmartCharging
"""

import asyncio
import base64
import json
import os
import ssl
import sys
from datetime import datetime, timezone

import websockets
from ocpp.routing import on
from ocpp.v16 import ChargePoint, call, call_result

URL, IDENTITY, PASSWORD = sys.argv[1:4]
MODE = sys.argv[4] if len(sys.argv) > 4 else "follow"
OWN_LIMIT = 32.0


def security():
    """For wss: the authority of the central system, and the certificate of the charger where it has one."""
    if not URL.startswith("wss:"):
        return {}
    context = ssl.create_default_context(cafile=os.environ["CA"])
    if "CERT" in os.environ:
        context.load_cert_chain(os.environ["CERT"], os.environ["KEY"])
    return {"ssl": context}


def show(what, **details):
    print(json.dumps({"what": what, **details}), flush=True)


def now():
    return datetime.now(timezone.utc)


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class Memory:
    """The charger keeps these over its connections, as real ones do."""

    profiles = {}
    transaction = None
    # Made once, so a repeat has the same content.
    start = None
    # Messages of the transaction that have no answer yet.
    queue = []
    energy = 1000.0
    has_ended = False
    is_connected = False


def limit():
    """Of profiles that are valid now, the highest stack level of each purpose, then the lowest of them."""
    best = {}
    for profile in Memory.profiles.values():
        if moment(profile["valid_to"]) <= now() or moment(profile["valid_from"]) > now():
            continue
        schedule = profile["charging_schedule"]
        if (now() - moment(schedule["start_schedule"])).total_seconds() > schedule["duration"]:
            continue
        purpose = profile["charging_profile_purpose"]
        level = profile["stack_level"]
        if purpose not in best or best[purpose][0] < level:
            best[purpose] = (level, schedule["charging_schedule_period"][0]["limit"])
    chosen = best.get("TxProfile") or best.get("TxDefaultProfile")
    limits = [chosen, best.get("ChargePointMaxProfile")]
    return min([OWN_LIMIT, *[found[1] for found in limits if found]])


def drawn():
    if Memory.transaction is None:
        return 0.0
    return OWN_LIMIT if MODE == "ignore" else (limit() if limit() >= 6 else 0.0)


def reading():
    return {
        "timestamp": now().isoformat(),
        "sampledValue": [
            {"value": f"{drawn() * 0.69:.3f}", "measurand": "Power.Active.Import", "unit": "kW"},
            *[
                {"value": f"{drawn():.1f}", "measurand": "Current.Import", "unit": "A", "phase": phase}
                for phase in ("L1", "L2", "L3")
            ],
            {"value": f"{Memory.energy:.0f}"},
        ],
    }


async def charge():
    """Meter values of the transaction, also without a connection."""
    is_limited = False
    while True:
        Memory.energy += drawn() * 690 / 3600 / 2
        if Memory.transaction is not None:
            value = reading()
            show("metered", at=value["timestamp"])
            Memory.queue.append(
                call.MeterValues(connector_id=1, transaction_id=Memory.transaction, meter_value=[value])
            )
        if is_limited and limit() == OWN_LIMIT and not Memory.is_connected:
            show("free", amperes=limit())
        is_limited = limit() < OWN_LIMIT
        await asyncio.sleep(0.5)


async def listen():
    """The line "stop" ends the session."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        Memory.queue.append(
            call.StopTransaction(
                transaction_id=Memory.transaction,
                meter_stop=int(Memory.energy),
                timestamp=now().isoformat(),
                id_tag="04A2B3C4",
                transaction_data=[reading()],
            )
        )
        Memory.transaction, Memory.has_ended = None, True


class Charger(ChargePoint):
    def __init__(self, *args):
        super().__init__(*args)
        self.settings = {
            "SupportedFeatureProfiles": "Core,RemoteTrigger"
            + ("" if MODE == "noSmartCharging" else ",SmartCharging"),
            "ChargeProfileMaxStackLevel": "20",
            "ChargingScheduleAllowedChargingRateUnit": "Current",
            "MeterValuesSampledData": "Energy.Active.Import.Register",
            "MeterValueSampleInterval": "60",
        }

    @on("GetConfiguration")
    def on_get(self, key=None, **_):
        keys = key or list(self.settings)
        return call_result.GetConfiguration(
            configuration_key=[
                {"key": name, "readonly": False, "value": self.settings[name]} for name in keys if name in self.settings
            ],
            unknown_key=[name for name in keys if name not in self.settings],
        )

    @on("ChangeConfiguration")
    def on_change(self, key, value):
        self.settings[key] = value
        show("setting", key=key, value=value)
        return call_result.ChangeConfiguration(status="Accepted")

    @on("SetChargingProfile")
    def on_set(self, connector_id, cs_charging_profiles):
        show("profile", connector=connector_id, profile=cs_charging_profiles)
        if MODE == "refuse":
            return call_result.SetChargingProfile(status="Rejected")
        Memory.profiles[cs_charging_profiles["charging_profile_id"]] = cs_charging_profiles
        return call_result.SetChargingProfile(status="Accepted")

    @on("ClearChargingProfile")
    def on_clear(self, id=None, **_):
        show("clear", id=id)
        known = Memory.profiles.pop(id, None) is not None
        return call_result.ClearChargingProfile(status="Accepted" if known else "Unknown")

    @on("GetCompositeSchedule")
    def on_composite(self, connector_id, duration, charging_rate_unit="A"):
        return call_result.GetCompositeSchedule(
            status="Accepted",
            connector_id=connector_id,
            schedule_start=now().isoformat(),
            charging_schedule={
                "duration": duration,
                "chargingRateUnit": charging_rate_unit,
                "chargingSchedulePeriod": [{"startPeriod": 0, "limit": limit()}],
            },
        )

    @on("Reset")
    def on_reset(self, type):
        show("reset", type=type)
        if MODE == "refuse":
            return call_result.Reset(status="Rejected")
        if Memory.transaction is not None:
            Memory.queue.append(
                call.StopTransaction(
                    transaction_id=Memory.transaction,
                    meter_stop=int(Memory.energy),
                    timestamp=now().isoformat(),
                    reason="SoftReset",
                )
            )
        Memory.transaction, Memory.start = None, None
        asyncio.get_running_loop().call_later(1, lambda: asyncio.ensure_future(self._connection.close()))
        return call_result.Reset(status="Accepted")

    @on("TriggerMessage")
    def on_trigger(self, requested_message, **_):
        if requested_message == "StatusNotification":
            asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(self.status()))
        return call_result.TriggerMessage(status="Accepted")

    async def status(self):
        idle = "Finishing" if Memory.has_ended else "Available"
        state = idle if Memory.transaction is None else ("Charging" if drawn() > 0 else "SuspendedEVSE")
        await self.call(
            call.StatusNotification(connector_id=1, error_code="NoError", status=state, timestamp=now().isoformat())
        )

    async def begin(self):
        if Memory.start is None:
            await self.call(call.Authorize(id_tag="04A2B3C4"))
            Memory.start = call.StartTransaction(
                connector_id=1, id_tag="04A2B3C4", meter_start=int(Memory.energy), timestamp=now().isoformat()
            )
        started = await self.call(Memory.start)
        Memory.transaction = started.transaction_id
        show("started", transaction=Memory.transaction, status=started.id_tag_info["status"])

    async def session(self):
        answer = await self.call(
            call.BootNotification(
                charge_point_model="Test", charge_point_vendor="mobilityhouse", firmware_version="1.6-test"
            )
        )
        show("booted", status=answer.status, time=answer.current_time)
        if Memory.transaction is None and not Memory.has_ended:
            await self.begin()
        before = None
        while True:
            if drawn() != before:
                before = drawn()
                await self.status()
                show("draws", amperes=before)
            # A message without an answer is repeated as it is.
            while Memory.queue:
                message = Memory.queue[0]
                await self.call(message)
                Memory.queue.pop(0)
                if isinstance(message, call.StopTransaction):
                    show("stopped", meter=message.meter_stop)
            await asyncio.sleep(0.1)


async def main():
    secure = security()
    login = base64.b64encode(f"{IDENTITY}:{PASSWORD}".encode()).decode()
    working = [asyncio.ensure_future(charge()), asyncio.ensure_future(listen())]
    while not any(task.done() and task.exception() for task in working):
        try:
            async with websockets.connect(
                f"{URL}/{IDENTITY}", subprotocols=["ocpp1.6"], additional_headers={"Authorization": f"Basic {login}"} if PASSWORD else {}, **secure
            ) as socket:
                await run(socket)
        except Exception as error:  # the connection is tried again, whatever ended it
            show("disconnected", reason=str(error)[:200])
        await asyncio.sleep(0.5)


async def run(socket):
    charger = Charger(IDENTITY, socket)
    both = [asyncio.ensure_future(charger.start()), asyncio.ensure_future(charger.session())]
    Memory.is_connected = True
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        Memory.is_connected = False
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


asyncio.run(main())
