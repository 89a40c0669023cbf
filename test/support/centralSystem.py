"""A central system of OCPP 1.6J on the library of mobilityhouse: software that is not ours.

Prints one JSON object per CALL that it receives. After a transaction has begun it sends one request of its own.
usage: centralSystem.py PORT
"""

import asyncio
import json
import sys
from datetime import datetime, timezone

import websockets
from ocpp.routing import after, on
from ocpp.v16 import ChargePoint, call, call_result


def show(what, **details):
    print(json.dumps({"what": what, **details}), flush=True)


def now():
    return datetime.now(timezone.utc).isoformat()


class Station(ChargePoint):
    @on("BootNotification")
    def on_boot(self, **details):
        show("BootNotification", **details)
        return call_result.BootNotification(current_time=now(), interval=300, status="Accepted")

    @on("Heartbeat")
    def on_heartbeat(self):
        return call_result.Heartbeat(current_time=now())

    @on("Authorize")
    def on_authorize(self, id_tag):
        show("Authorize", id_tag=id_tag)
        return call_result.Authorize(id_tag_info={"status": "Accepted"})

    @on("StatusNotification")
    def on_status(self, **details):
        show("StatusNotification", **details)
        return call_result.StatusNotification()

    @on("StartTransaction")
    def on_start(self, **details):
        show("StartTransaction", **details)
        return call_result.StartTransaction(transaction_id=4711, id_tag_info={"status": "Accepted"})

    @after("StartTransaction")
    async def after_start(self, **_):
        answer = await self.call(call.GetConfiguration(key=["MeterValueSampleInterval"]))
        show("configuration", values=answer.configuration_key)

    @on("MeterValues")
    def on_meter(self, **details):
        show("MeterValues", **details)
        return call_result.MeterValues()

    @on("StopTransaction")
    def on_stop(self, **details):
        show("StopTransaction", **details)
        return call_result.StopTransaction()


async def main():
    async def accept(socket):
        show("connected", path=socket.request.path, authorization=socket.request.headers.get("Authorization"))
        try:
            await Station(socket.request.path.split("/")[-1], socket).start()
        except websockets.ConnectionClosed:
            show("disconnected")

    async with websockets.serve(accept, "127.0.0.1", int(sys.argv[1]), subprotocols=["ocpp1.6"]):
        show("up")
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
