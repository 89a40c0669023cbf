"""A charge point of OCPP 1.6J on the library of mobilityhouse: software that is not ours.

Draws 3 x 32 A at 230 V while a transaction runs, less where its charging profiles say so. Prints one JSON object per line.
usage: chargePoint.py URL IDENTITY PASSWORD [MODE]; MODE: follow (default), ignore, refuse, noSmartCharging
"""

import asyncio
import base64
import json
import sys
from datetime import datetime, timezone

import websockets
from ocpp.routing import on
from ocpp.v16 import ChargePoint, call, call_result

URL, IDENTITY, PASSWORD = sys.argv[1:4]
MODE = sys.argv[4] if len(sys.argv) > 4 else "follow"
OWN_LIMIT = 32.0


def show(what, **details):
    print(json.dumps({"what": what, **details}), flush=True)


def now():
    return datetime.now(timezone.utc)


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class Charger(ChargePoint):
    def __init__(self, *args):
        super().__init__(*args)
        self.profiles = {}
        self.transaction = None
        self.energy = 1000.0
        self.settings = {
            "SupportedFeatureProfiles": "Core,RemoteTrigger"
            + ("" if MODE == "noSmartCharging" else ",SmartCharging"),
            "ChargeProfileMaxStackLevel": "20",
            "ChargingScheduleAllowedChargingRateUnit": "Current",
            "MeterValuesSampledData": "Energy.Active.Import.Register",
            "MeterValueSampleInterval": "60",
        }

    def limit(self):
        """Of profiles that are valid now, the highest stack level of each purpose, then the lowest of them."""
        best = {}
        for profile in self.profiles.values():
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
        return min([OWN_LIMIT, *[limit[1] for limit in limits if limit]])

    def drawn(self):
        if self.transaction is None:
            return 0.0
        return OWN_LIMIT if MODE == "ignore" else (self.limit() if self.limit() >= 6 else 0.0)

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
        self.profiles[cs_charging_profiles["charging_profile_id"]] = cs_charging_profiles
        return call_result.SetChargingProfile(status="Accepted")

    @on("ClearChargingProfile")
    def on_clear(self, id=None, **_):
        show("clear", id=id)
        known = self.profiles.pop(id, None) is not None
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
                "chargingSchedulePeriod": [{"startPeriod": 0, "limit": self.limit()}],
            },
        )

    @on("TriggerMessage")
    def on_trigger(self, requested_message, **_):
        if requested_message == "StatusNotification":
            asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(self.status()))
        return call_result.TriggerMessage(status="Accepted")

    async def status(self):
        state = "Available" if self.transaction is None else ("Charging" if self.drawn() > 0 else "SuspendedEVSE")
        await self.call(call.StatusNotification(connector_id=1, error_code="NoError", status=state, timestamp=now().isoformat()))

    async def session(self):
        answer = await self.call(call.BootNotification(charge_point_model="Test", charge_point_vendor="mobilityhouse"))
        show("booted", status=answer.status, time=answer.current_time)
        await self.call(call.Authorize(id_tag="04A2B3C4"))
        started = await self.call(
            call.StartTransaction(connector_id=1, id_tag="04A2B3C4", meter_start=int(self.energy), timestamp=now().isoformat())
        )
        self.transaction = started.transaction_id
        show("started", transaction=self.transaction, status=started.id_tag_info["status"])
        before = None
        while True:
            drawn = self.drawn()
            self.energy += drawn * 690 / 3600 / 2
            if drawn != before:
                await self.status()
                show("draws", amperes=drawn)
                before = drawn
            await self.call(
                call.MeterValues(
                    connector_id=1,
                    transaction_id=self.transaction,
                    meter_value=[
                        {
                            "timestamp": now().isoformat(),
                            "sampledValue": [
                                {"value": f"{drawn * 0.69:.3f}", "measurand": "Power.Active.Import", "unit": "kW"},
                                *[
                                    {"value": f"{drawn:.1f}", "measurand": "Current.Import", "unit": "A", "phase": phase}
                                    for phase in ("L1", "L2", "L3")
                                ],
                                {"value": f"{self.energy:.0f}"},
                            ],
                        }
                    ],
                )
            )
            await asyncio.sleep(0.5)


async def main():
    login = base64.b64encode(f"{IDENTITY}:{PASSWORD}".encode()).decode()
    while True:
        try:
            async with websockets.connect(
                f"{URL}/{IDENTITY}", subprotocols=["ocpp1.6"], additional_headers={"Authorization": f"Basic {login}"}
            ) as socket:
                await Connections.run(socket)
        except Exception as error:  # the connection is tried again, whatever ended it
            show("disconnected", reason=str(error)[:200])
        await asyncio.sleep(0.5)


class Connections:
    """The charger keeps its profiles over its connections, as real ones do."""

    profiles = {}

    @classmethod
    async def run(cls, socket):
        charger = Charger(IDENTITY, socket)
        charger.profiles = cls.profiles
        listening = asyncio.ensure_future(charger.start())
        session = asyncio.ensure_future(charger.session())
        try:
            await asyncio.wait([listening, session], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, session):
                task.cancel()
            while charger.limit() < OWN_LIMIT:
                await asyncio.sleep(0.1)
            show("free", amperes=charger.limit())
            await asyncio.gather(listening, session, return_exceptions=True)


asyncio.run(main())
