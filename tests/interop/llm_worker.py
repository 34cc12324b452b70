"""One side of the exchange of language models, in a process of its own and under either package.

python llm_worker.py operators SIDE FOLDER         calls.pt to operators.SIDE.pt
python llm_worker.py export SIDE FOLDER NAME [SETTING...]    to NAME.SIDE.pte
python llm_worker.py run SIDE FOLDER PROGRAM       PROGRAM.pte to PROGRAM.by_SIDE.pt
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import torch

# Tokens of one conversation: some at once, then one by one.
LENGTHS = (5, 1, 1, 7, 1)


def operators(side: str, folder: Path) -> None:
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401

    results = []
    for name, args, kwargs in torch.load(folder / "calls.pt"):
        result = getattr(torch.ops.llama, name)(*args, **kwargs)
        # What an update returns says nothing; it changes its argument.
        results.append(args[1] if name.startswith("update_cache") else result)
    torch.save(results, folder / f"operators.{side}.pt")


def export(side: str, folder: Path, name: str, *settings: str) -> None:
    command = [
        *(sys.executable, "-m", "executorch.extension.llm.export.export_llm"),
        *("base.model_class=llama3", f"base.params={folder / 'params.json'}"),
        f"base.checkpoint={folder / 'weights.pth'}",
        *("export.max_seq_length=16", "export.max_context_length=40"),
        *("model.use_kv_cache=True", f"export.output_name={name}.{side}.pte", *settings),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])


def run(side: str, folder: Path, program: str) -> None:
    import executorch.kernels.quantized  # noqa: F401
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401
    from executorch.runtime import Runtime

    loaded = Runtime.get().load_program(folder / f"{program}.pte")
    forward = loaded.load_method("forward")
    torch.manual_seed(0)
    logits, start = [], 0
    for n in LENGTHS:
        (found,) = forward.execute((torch.randint(0, 96, (1, n)), torch.tensor([start])))
        logits.append(found.clone())
        start += n
    constants = {
        name: list(loaded.load_method(name).execute(()))
        for name in sorted(loaded.method_names)
        if name != "forward"
    }
    torch.save((logits, constants), folder / f"{program}.by_{side}.pt")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    verb, side, folder, *rest = sys.argv[1:]
    {"operators": operators, "export": export, "run": run}[verb](side, Path(folder), *rest)
