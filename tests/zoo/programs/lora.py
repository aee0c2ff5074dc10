"""Trains LoRA adapters of peft on a small Llama: lora.py lora | dora | ia3."""
import peft
import transformers

import recipe


def main():
    run = recipe.parse()
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      vocab_size=300, max_position_embeddings=128)
    adapters = {"lora": lambda: peft.LoraConfig(r=8, lora_alpha=16, task_type="CAUSAL_LM"),
                "dora": lambda: peft.LoraConfig(r=8, lora_alpha=16, use_dora=True, task_type="CAUSAL_LM"),
                "ia3": lambda: peft.IA3Config(task_type="CAUSAL_LM")}
    model = peft.get_peft_model(transformers.LlamaForCausalLM(config), adapters[run.name]())

    def loss_of(m):
        ids = run.integers(3, 300, 2, 24)
        return m(input_ids=ids, labels=ids).loss

    recipe.train(run, model, loss_of)


main()
