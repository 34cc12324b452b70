"""Answer HTTP requests with a program, from several processes of one machine or of many.

    python serve.py model.pte --replicas 2
    curl localhost:8000 -d '{"inputs": [[[1, 2, 3, 4]]]}'      # {"outputs": [[[0.1, 0.2]]]}

Each process maps the program, so that the weights are in a machine's memory once, and runs on one
thread. A process that dies is started again; requests that it held are answered with status 500,
and may be sent again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

from executorch.extension.pybindings import portable_lib
from executorch.runtime import Module

DTYPES = {0: np.uint8, 3: np.int32, 4: np.int64, 6: np.float32, 7: np.float64, 11: np.bool_}


@serve.deployment
class Replica:
    """One process's program. It runs one request at a time."""

    def __init__(self, model: str) -> None:
        portable_lib._unsafe_reset_threadpool(1)  # the other cores have processes of their own
        self.module = Module(model)
        meta = self.module.metadata()
        self.inputs = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]

    async def __call__(self, request: Request) -> JSONResponse:
        """{"inputs": [one nested list for each input]} -> {"outputs": [...]}; 400 where that does
        not fit, with {"error": why}."""
        try:
            outputs = self.module(*self.arrays(json.loads(await request.body())))
        except (ValueError, RuntimeError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        return JSONResponse({"outputs": [np.asarray(y).tolist() for y in outputs]})

    def arrays(self, body: Any) -> list[np.ndarray]:
        """Raises ValueError where the request is not of the form, or its lists are ragged."""
        given = body.get("inputs") if isinstance(body, dict) else None
        if not isinstance(given, list) or len(given) != len(self.inputs):
            raise ValueError(f'expected {{"inputs": [...]}} with {len(self.inputs)} of them')
        return [
            np.array(values, DTYPES[info.dtype()])
            for values, info in zip(given, self.inputs, strict=True)
        ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a .pte, under the same path on every machine")
    parser.add_argument("--replicas", type=int, default=2, help="processes, one core each")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for all who reach it")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--address", help="a running cluster's; without it one is started here")
    args = parser.parse_args()
    model = str(Path(args.model).resolve(strict=True))

    if args.address:
        ray.init(address=args.address)
    else:  # one more than the replicas have, for what takes the requests
        ray.init(num_cpus=args.replicas + 1, include_dashboard=False)
    try:
        serve.start(http_options={"host": args.host, "port": args.port})
        options = {"num_replicas": args.replicas, "ray_actor_options": {"num_cpus": 1}}
        serve.run(Replica.options(**options).bind(model))
        print(f"listening at http://{args.host}:{args.port}/", flush=True)
        serve.run(Replica.options(**options).bind(model), blocking=True)
    except KeyboardInterrupt:
        return 0
    finally:
        serve.shutdown()
        ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
