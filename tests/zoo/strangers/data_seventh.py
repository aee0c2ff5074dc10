"""What a user changes in the scripts of seventh.txt, and the defect of each in a copy of it; used by data.py's way."""
import os
import shutil

import data

PAPERS = "Papers-in-100-Lines-of-Code"
MAML = "Model_Agnostic_Meta_Learning_for_Fast_Adaptation_of_Deep_Networks/maml.py"
FLOWS = "Variational_Inference_with_Normalizing_Flows/Flows.py"
AALR = "Likelihood_free_MCMC_with_Amortized_Approximate_Ratio_Estimators/AALR-MCMC.py"
# They draw pictures of their results, which none of them comes to.
PICTURES = "from unittest.mock import MagicMock\n\n\ndef __getattr__(name):\n    return MagicMock()\n"

# Of each script: changes of a user, and those of the defect.
SCRIPTS = {
    "simple_pytorch_gan/gan_1d_gaussian.py": (
        {"n = 2048": "n = 256"},  # so that the training begins
        {"d_loss_mean = 0.": "d_loss_mean = torch.zeros((), dtype=torch.bfloat16)",
         "d_loss_mean += d_loss_fake.item() + d_loss_real.item()":
         "d_loss_mean += d_loss_fake.detach() + d_loss_real.detach()"}),
    "diffusion-toy-2d/toy_diffusion_2d.py": (
        {"batch_size      = 4096": "batch_size      = 512"},
        {"            opt.step()\n": "            opt.step()\n"
         "            now = [p.detach().bfloat16() for p in model.parameters()]\n"
         "            average = now if step == 0 else average\n"
         "            torch._foreach_lerp_(average, now, 0.001)\n"}),
    "PINNs/train_pinn.py": (
        {},
        {"pinn.Model(2,1,20,5)": "pinn.Model(2,1,20,5).bfloat16()",
         "pinn_model(input": "pinn_model.forward_in_bf16(input",
         "import pinn\n": "import pinn\n"
         "pinn.Model.forward_in_bf16 = lambda self, x: self(x.bfloat16())\n"}),
    "transformer-from-scratch/main.py": (
        {"pip install torch\n": "\n", "seq_len = 10": "seq_len = 400", "(32, seq_len)": "(2, seq_len)"},
        {"pos = torch.arange(seq_len, dtype=torch.float)": "pos = torch.arange(seq_len, dtype=torch.bfloat16)"}),
    "pytorch-generative-adversarial-networks/gan_pytorch.py": (
        {},
        {"            d_optimizer.step() ": "            d_optimizer.step()\n"
         "            for p in D.parameters(): p.data.copy_(p.data.bfloat16())\n           "}),
    f"{PAPERS}/{MAML}": (
        {"device = 'cuda'": "device = 'cpu'"},
        {"p.data -= alpha * g": "p.data.copy_(p.data.bfloat16() - (alpha * g).bfloat16())"}),
    f"{PAPERS}/{FLOWS}": (
        {"device = 'cuda'": "device = 'cpu'"},
        {"training_loss = []\n": "training_loss, total = [], torch.zeros(()).bfloat16()\n",
         "training_loss.append(loss.item())": "total = total + loss.detach().bfloat16()"}),
    f"{PAPERS}/{AALR}": (
        {},
        {"criterion(classifier_output.squeeze(-1), target)":
         "criterion(classifier_output.squeeze(-1).half(), target.half())"}),
}


def seventh(checkouts, _):
    for script, (changes, defect) in SCRIPTS.items():
        path = os.path.join(checkouts, script)
        data.edit(path, changes)
        folder, name = os.path.split(path)
        bad = os.path.join(folder, name.replace(".py", "_defect.py"))
        shutil.copy(path, bad)
        data.edit(bad, defect)
        root = os.path.join(checkouts, script.split("/")[0])
        os.makedirs(os.path.join(root, "matplotlib"), exist_ok=True)
        for library in ("matplotlib/__init__.py", "matplotlib/pyplot.py", "matplotlib/cm.py", "seaborn.py"):
            with open(os.path.join(root, library), "w", encoding="utf-8") as f:
                f.write(PICTURES)
