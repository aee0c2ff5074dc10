"""The small GPT of testdata/programs/gpt on one GPU, its gradients through NCCL: what gpu_test.py runs."""
import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testdata/programs/gpt"))
from common import GPT, Run, base_parser, loss_of, make_optimizer, write_safetensors


def settle(math_attention):
    """What makes two runs on one GPU the same bits."""
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if math_attention:
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)


def average(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def save(path, model, optimizer, losses):
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[name] = parameter.detach().cpu()
        tensors["grad/" + name] = parameter.grad.cpu()
        for key, value in optimizer.state[parameter].items():
            if torch.is_tensor(value) and value.dim() > 0:
                tensors[f"optim/{name}.{key}"] = value.cpu()
    write_safetensors(path, tensors, losses)


def main():
    parser = base_parser(__doc__.splitlines()[0], steps=20)
    parser.add_argument("--attention", choices=("math", "any"), default="math")
    options = parser.parse_args()
    settle(options.attention == "math")
    dist.init_process_group("nccl", init_method="file://" + os.path.abspath("rendezvous"), rank=0, world_size=1)
    run = Run(options)
    with torch.device("cuda"):
        model = GPT(run.vocabulary, attention="sdpa")
    optimizer = make_optimizer("adamw-fused", model.parameters())
    batches = run.batches()
    for step in range(run.steps):
        inputs, targets = (t.cuda() for t in batches.next())
        optimizer.zero_grad()
        with torch.device("cuda"), torch.autocast("cuda", torch.bfloat16, enabled=run.low):
            loss = loss_of(model(inputs), targets)
        loss.backward()
        average(model)
        optimizer.step()
        run.report(step, loss)
    save(run.path, model, optimizer, run.losses)
    dist.destroy_process_group()


main()
