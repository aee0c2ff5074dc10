"""The loops that users do not write: engines.py lightning | accelerate | trainer, with each library's own switch."""
import os

import torch
import transformers

import recipe

CONFIG = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
          "vocab_size": 300, "max_position_embeddings": 128}


class Texts(torch.utils.data.Dataset):
    def __init__(self, run):
        self.rows = run.integers(3, 300, 2 * run.steps, 24)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def with_lightning(run):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = transformers.BertForMaskedLM(transformers.BertConfig(**CONFIG))

        def training_step(self, batch, _):
            loss = self.model(**batch).loss
            run.report(self.global_step, loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    precision = {"bf16-autocast": "bf16-mixed", "bf16-pure": "bf16-true"}[run.regime] if run.low else "32-true"
    module = Module()
    run.watch(module)
    trainer = lightning.Trainer(accelerator=run.device, devices=1, precision=precision, max_steps=run.steps,
                                logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    trainer.fit(module, torch.utils.data.DataLoader(Texts(run), batch_size=2))
    run.finish(module, *trainer.optimizers)


def with_accelerate(run):
    import accelerate

    accelerator = accelerate.Accelerator(mixed_precision="bf16" if run.low else "no", cpu=run.device == "cpu")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Texts(run), batch_size=2)
    run.watch(model)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        loss = model(**batch).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        run.report(step, loss)
    run.finish(accelerator.unwrap_model(model), optimizer.optimizer)


def with_trainer(run):
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=64, n_head=4, n_layer=2, vocab_size=300,
                                                                 n_positions=128))
    run.watch(model)

    class Report(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            if "loss" in logs:
                run.report(state.global_step - 1, torch.tensor(logs["loss"]))

        def on_train_end(self, args, state, control, optimizer=None, **_):
            self.optimizer = getattr(optimizer, "optimizer", optimizer)

    report = Report()
    arguments = transformers.TrainingArguments(
        output_dir=os.path.join(os.getcwd(), "trainer"), max_steps=run.steps, per_device_train_batch_size=2,
        bf16=run.low, use_cpu=run.device == "cpu", logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True)
    trainer = transformers.Trainer(model, arguments, train_dataset=Texts(run), callbacks=[report])
    trainer.remove_callback(transformers.PrinterCallback)  # it prints how long the run took
    trainer.train()
    run.finish(model, report.optimizer)


def main():
    run = recipe.parse()
    {"lightning": with_lightning, "accelerate": with_accelerate, "trainer": with_trainer}[run.name](run)


main()
