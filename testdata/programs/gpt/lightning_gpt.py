"""Trains the small GPT with Lightning: bf16-mixed, or fp32; automatic or manual optimization."""
import logging
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, IterableDataset

from common import GPT, Run, base_parser, loss_of, make_optimizer


class Windows(IterableDataset):
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        while True:
            yield self.batches.next()


class Language(lightning.LightningModule):
    """The whole training step is forward(), so that the outermost module names every parameter."""

    def __init__(self, run, manual):
        super().__init__()
        self.run, self.automatic_optimization = run, not manual
        self.model = GPT(run.vocabulary, dropout=0.1)

    def forward(self, inputs, targets):
        return loss_of(self.model(inputs), targets)

    def training_step(self, batch, step):
        loss = self(*batch)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            self.clip_gradients(optimizer, gradient_clip_val=0.5, gradient_clip_algorithm="norm")
            optimizer.step()
        self.run.report(step, loss)
        return loss

    def configure_optimizers(self):
        return make_optimizer("adamw", self.parameters())


class KeepGradients(lightning.Callback):
    """The last step's gradients and the optimizer's state are still there when training ends."""

    def on_train_end(self, trainer, module):
        module.run.finish(module, trainer.optimizers[0])


def main():
    parser = base_parser(__doc__, steps=20)
    parser.add_argument("--manual", action="store_true", help="manual optimization")
    options = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    run = Run(options)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_steps=run.steps, precision="bf16-mixed" if run.low else "32-true",
        gradient_clip_val=None if options.manual else 1.0, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[KeepGradients()])
    trainer.fit(Language(run, options.manual), DataLoader(Windows(run.batches()), batch_size=None))


main()
