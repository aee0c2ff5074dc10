"""Runs programs on the fakes of NVIDIA's libraries."""
import os
import subprocess


def environment(fakes, **more):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "MP_", "NVTX_", "CUDA_"))
             and k not in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LD_PRELOAD")}
    return {**clean, "LD_LIBRARY_PATH": fakes, **more}


def run(command, env, cwd=None):
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, timeout=60)
