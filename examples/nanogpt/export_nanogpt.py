"""Export the GPT of this folder to nanogpt.pte, in the current folder.

python export_nanogpt.py                     # the weights shipped here
python export_nanogpt.py --pretrained gpt2   # OpenAI's, through transformers
python export_nanogpt.py --quantize int8     # or int4: needs torchao
"""

import argparse
import json
from pathlib import Path

import torch
from model import GPT

from executorch.export import export

HERE = Path(__file__).resolve().parent

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--pretrained", help="a GPT-2 name or folder for transformers")
parser.add_argument("--quantize", choices=["int8", "int4"], help="weights of 8 or 4 bits")
parser.add_argument("-o", "--output", "--out", type=Path, default=Path("nanogpt.pte"))
args = parser.parse_args()

if args.pretrained:
    model = GPT.from_pretrained(args.pretrained)
    end_of_text = model.config.vocab_size - 1
else:
    model = GPT.from_file(HERE / "nanogpt.safetensors")
    end_of_text = json.loads((HERE / "vocab.json").read_text())["<|endoftext|>"]
block_size = model.config.block_size

# The example only carries shapes; the token dimension stays free up to the block size.
example_inputs = (torch.randint(0, model.config.vocab_size, (1, block_size)),)
# What a runner must know of the model travels inside the program, as methods without inputs.
metadata = {"get_max_seq_len": block_size, "get_eos_id": end_of_text}
# The tokenizer, too, where it is this folder's: `executorch generate` then needs nothing else.
named_data = None if args.pretrained else {"tokenizer": (HERE / "vocab.json").read_bytes()}
session = export(
    model.eval(),
    example_inputs,
    dynamic_shapes=({1: torch.export.Dim("token_dim", max=block_size)},),
    constant_methods=metadata,
    named_data=named_data,
    incremental=True,  # it keeps what it computed for the tokens that it has seen
    quantize=args.quantize,
)
session.save_to_pte(str(args.output))
print(f"{args.output}: {args.output.stat().st_size:,} bytes")
