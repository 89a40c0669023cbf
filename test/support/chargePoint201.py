"""A charging station of OCPP 2.0.1 on the library of mobilityhouse: software that is not ours.

Draws 3 x 32 A at 230 V in its transaction, less where a charging profile says so. Prints one JSON object per line.
usage: chargePoint201.py URL IDENTITY PASSWORD
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
from ocpp.v201 import ChargePoint, call, call_result

URL, IDENTITY, PASSWORD = sys.argv[1:4]
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


class Station(ChargePoint):
    # A restart is under way.
    restarts = False

    profiles = {}
    transaction = "t-1"
    seq = 0
    energy = 1000.0

    def limit(self):
        valid = [profile for profile in self.profiles.values() if moment(profile["valid_to"]) > now()]
        limits = [profile["charging_schedule"][0]["charging_schedule_period"][0]["limit"] for profile in valid]
        return min([OWN_LIMIT, *limits])

    @on("GetVariables")
    def on_get(self, get_variable_data, **_):
        return call_result.GetVariables(
            get_variable_result=[
                {
                    "attributeStatus": "Accepted" if asked["variable"]["name"] == "Enabled" else "UnknownVariable",
                    **({"attributeValue": "true"} if asked["variable"]["name"] == "Enabled" else {}),
                    "component": asked["component"],
                    "variable": asked["variable"],
                }
                for asked in get_variable_data
            ]
        )

    @on("SetVariables")
    def on_variables(self, set_variable_data, **_):
        show("variables", values=set_variable_data)
        return call_result.SetVariables(
            set_variable_result=[
                {"attributeStatus": "Accepted", "component": wanted["component"], "variable": wanted["variable"]}
                for wanted in set_variable_data
            ]
        )

    @on("SetChargingProfile")
    def on_set(self, evse_id, charging_profile, **_):
        show("profile", evse=evse_id, profile=charging_profile)
        self.profiles[charging_profile["id"]] = charging_profile
        return call_result.SetChargingProfile(status="Accepted")

    @on("ClearChargingProfile")
    def on_clear(self, charging_profile_id=None, **_):
        known = self.profiles.pop(charging_profile_id, None) is not None
        return call_result.ClearChargingProfile(status="Accepted" if known else "Unknown")

    @on("GetCompositeSchedule")
    def on_composite(self, duration, evse_id, charging_rate_unit="A", **_):
        return call_result.GetCompositeSchedule(
            status="Accepted",
            schedule={
                "evseId": evse_id,
                "duration": duration,
                "scheduleStart": now().isoformat(),
                "chargingRateUnit": charging_rate_unit,
                "chargingSchedulePeriod": [{"startPeriod": 0, "limit": self.limit()}],
            },
        )

    @on("Reset")
    def on_reset(self, type, **_):
        show("reset", type=type)
        Station.restarts = True
        asyncio.get_running_loop().call_later(1, lambda: asyncio.ensure_future(self._connection.close()))
        return call_result.Reset(status="Accepted")

    @on("TriggerMessage")
    def on_trigger(self, **_):
        return call_result.TriggerMessage(status="NotImplemented")

    async def event(self, kind, reason, drawn, **more):
        self.seq += 1
        values = [
            {"value": drawn * 0.69, "measurand": "Power.Active.Import", "unitOfMeasure": {"unit": "W", "multiplier": 3}},
            *[
                {"value": drawn, "measurand": "Current.Import", "phase": phase, "unitOfMeasure": {"unit": "A"}}
                for phase in ("L1", "L2", "L3")
            ],
            {"value": self.energy, "unitOfMeasure": {"unit": "Wh"}},
        ]
        await self.call(
            call.TransactionEvent(
                event_type=kind,
                timestamp=now().isoformat(),
                trigger_reason=reason,
                seq_no=self.seq,
                transaction_info={
                    "transactionId": self.transaction,
                    "chargingState": "Charging" if drawn > 0 else "SuspendedEVSE",
                },
                meter_value=[{"timestamp": now().isoformat(), "sampledValue": values}],
                **more,
            )
        )

    async def session(self):
        answer = await self.call(
            call.BootNotification(charging_station={"model": "Test", "vendorName": "mobilityhouse", "firmwareVersion": "2.0.1-test"}, reason="PowerUp")
        )
        show("booted", status=answer.status)
        await self.call(
            call.StatusNotification(
                timestamp=now().isoformat(), connector_status="Occupied", evse_id=1, connector_id=1
            )
        )
        token = {"idToken": "04A2B3C4", "type": "ISO14443"}
        await self.event("Started", "Authorized", 0.0, evse={"id": 1, "connectorId": 1}, id_token=token)
        before = None
        while True:
            drawn = self.limit() if self.limit() >= 6 else 0.0
            self.energy += drawn * 690 / 3600 / 2
            if drawn != before:
                show("draws", amperes=drawn)
                before = drawn
            # As most stations do: an update does not repeat its EVSE.
            await self.event("Updated", "MeterValuePeriodic", drawn)
            await asyncio.sleep(0.5)


async def main():
    secure = security()
    login = base64.b64encode(f"{IDENTITY}:{PASSWORD}".encode()).decode()
    while True:
        Station.restarts = False
        try:
            async with websockets.connect(
                f"{URL}/{IDENTITY}", subprotocols=["ocpp2.0.1"], additional_headers={"Authorization": f"Basic {login}"} if PASSWORD else {}, **secure
            ) as socket:
                station = Station(IDENTITY, socket)
                await asyncio.gather(station.start(), station.session())
        except websockets.ConnectionClosed:
            if not Station.restarts:
                raise
        await asyncio.sleep(1)


asyncio.run(main())
