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
from torch.export import Dim, export
from torch.nn.attention import SDPBackend, sdpa_kernel

from executorch.exir import EdgeCompileConfig, to_edge

HERE = Path(__file__).resolve().parent

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--pretrained", help="a GPT-2 name or folder for transformers")
parser.add_argument("--quantize", choices=["int8", "int4"], help="weights of 8 or 4 bits")
parser.add_argument("--out", type=Path, default=Path("nanogpt.pte"))
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
dynamic_shape = ({1: Dim("token_dim", max=block_size)},)

# The maths form of attention decomposes into operators that every backend knows.
with sdpa_kernel([SDPBackend.MATH]), torch.no_grad():
    if args.quantize:
        from executorch.backends.xnnpack.quantizer.quantize_model import quantize_model

        model = quantize_model(model, example_inputs, args.quantize, dynamic_shape)
    m = export(model, example_inputs, dynamic_shapes=dynamic_shape).module()
    traced_model = export(m, example_inputs, dynamic_shapes=dynamic_shape)

# What a runner must know of the model travels inside the program, as methods without inputs.
metadata = {"get_max_seq_len": block_size, "get_eos_id": end_of_text}
edge_manager = to_edge(
    traced_model,
    constant_methods=metadata,
    compile_config=EdgeCompileConfig(_check_ir_validity=False),
)
et_program = edge_manager.to_executorch()
et_program.save(str(args.out))
print(f"{args.out}: {args.out.stat().st_size:,} bytes")
