"""The bare baseline: a grpc.aio server with one unary method that answers what it was sent.

Run as a process by the benchmarks. Prints its port when ready and ends with its standard input.
"""

import asyncio
import sys
from typing import Any

import grpc


async def echo(request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    """Answer what was sent."""
    del context
    return request


async def main() -> None:
    """Serve until standard input ends."""
    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("bench.Echo", {"Echo": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
