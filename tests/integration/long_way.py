#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A long way: a TCP relay that hands on each byte, and each end, a fixed time after it came. It takes whatever comes, so
that what bounds a sender is the window of the protocol above TCP. long_way.py DELAY_MS ADDRESS PORT TO_ADDRESS TO_PORT
"""
import asyncio
import collections
import sys

CHUNK = 1 << 18


async def one_way(reader, writer, delay):
    loop, waiting, more = asyncio.get_running_loop(), collections.deque(), asyncio.Event()

    async def deliver():
        while True:
            while not waiting:
                more.clear()
                await more.wait()
            due, data = waiting.popleft()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    task = asyncio.create_task(deliver())
    try:
        while True:
            data = await reader.read(CHUNK)
            waiting.append((loop.time() + delay, data))
            more.set()
            if not data:
                break
        await task
    except OSError:
        task.cancel()
        writer.close()


async def main():
    delay, address, port, to_address, to_port = sys.argv[1:]

    async def serve(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(to_address, int(to_port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(one_way(reader, to_writer, float(delay) / 1000), one_way(to_reader, writer, float(delay) / 1000),
                             return_exceptions=True)
        writer.close()
        to_writer.close()

    server = await asyncio.start_server(serve, address, int(port))
    async with server:
        await server.serve_forever()


asyncio.run(main())
