"""Trains a small UNet of diffusers to predict noise, as its tutorial does: diffusion.py UNet2DModel | ..."""
import diffusers
import torch

import recipe


def make(name):
    if name == "UNet2DModel":
        return diffusers.UNet2DModel(
            sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
            down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    return diffusers.UNet2DConditionModel(
        sample_size=32, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
        cross_attention_dim=32, attention_head_dim=8, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))


def main():
    run = recipe.parse()
    scheduler = diffusers.DDPMScheduler(num_train_timesteps=1000)

    def loss_of(model):
        clean, noise = run.rand(2, 3, 32, 32), run.rand(2, 3, 32, 32)
        times = run.integers(0, 1000, 2)
        noisy = scheduler.add_noise(clean, noise, times)
        told = (run.rand(2, 8, 32),) if run.name == "UNet2DConditionModel" else ()
        predicted = model(noisy, times, *told, return_dict=False)[0]
        return torch.nn.functional.mse_loss(predicted.float(), noise.float())

    recipe.train(run, make(run.name), loss_of)


main()
